//! The arrows of buffers at the right of a loop-nest forest, and their labels.
//!
//! A term has its arrows at different heights: arrows that come in above those that go out, and
//! either so that an inner arrow never crosses an outer one.

use std::cmp::Reverse;
use std::f64::consts::FRAC_PI_2;

use crate::canvas::Canvas;
use crate::canvas::Point;
use crate::canvas::Stroke;
use crate::nest::NestBuffer;
use crate::nest_layout::BOX_TEXT;
use crate::nest_layout::MARGIN;
use crate::nest_layout::NestLayout;
use crate::style::SOFT_INK;
use crate::style::WHITE;

/// The line of an arrow.
const ARROW: Stroke = Stroke { width: 1.3, color: SOFT_INK };
/// The line from an arrow to its label, and the gap that it leaves in arrows it passes.
const LEADER: Stroke = Stroke { width: 0.8, color: SOFT_INK };
const BRIDGE: Stroke = Stroke { width: 5.0, color: WHITE };
/// Radius of the turns of arrows.
const TURN: f64 = 5.0;

/// One arrow: out of the producer, down its lane, into the consumer.
#[derive(Clone, Copy, Debug)]
struct Route {
    from: Point,
    lane: f64,
    to: Point,
}

/// Draws the arrows of all buffers with their labels.
pub(crate) fn draw_arrows(canvas: &mut Canvas, layout: &NestLayout<'_>, buffers: &[NestBuffer]) {
    let routes: Vec<Route> = (0..buffers.len()).map(|at| route(layout, buffers, at)).collect();
    for route in &routes {
        canvas.arrow(route.path(), ARROW);
    }
    let middles: Vec<f64> = routes.iter().map(|r| (r.from.1 + r.to.1) / 2.0).collect();
    let left = layout.labels_at();
    let room = layout.width - MARGIN - left;
    for ((route, buffer), middle) in routes.iter().zip(buffers).zip(layout.spread_labels(&middles))
    {
        let start = (route.lane, middle.clamp(route.from.1 + TURN, route.to.1 - TURN));
        let end = (left - 3.0, middle);
        if end.0 - start.0 > 12.0 {
            let bridge = (start.0 + ARROW.width + BRIDGE.width / 2.0, start.1);
            canvas.line(vec![bridge, end], BRIDGE);
        }
        canvas.line(vec![start, end], LEADER);
        canvas.disc(start, 2.2, ARROW.color);
        canvas.text_centred((left, middle), buffer.label_within(room), BOX_TEXT);
    }
}

/// Returns the way of arrow `at`.
fn route(layout: &NestLayout<'_>, buffers: &[NestBuffer], at: usize) -> Route {
    let port = |term: usize| {
        let frame = layout.terms[term].frame;
        let ports = ports(&layout.lanes, buffers, term);
        let place = ports.iter().position(|port| *port == at).unwrap_or(0);
        let share = (place as f64 + 1.0) / (ports.len() as f64 + 1.0);
        (frame.left + frame.width, frame.top + share * frame.height)
    };
    let buffer = &buffers[at];
    let lane = layout.lane_at(layout.lanes[at]);
    Route { from: port(buffer.producer), lane, to: port(buffer.consumer) }
}

/// Returns the buffers at a term from top to bottom.
fn ports(lanes: &[usize], buffers: &[NestBuffer], term: usize) -> Vec<usize> {
    let with = |wanted: fn(&NestBuffer) -> usize| -> Vec<usize> {
        (0..buffers.len()).filter(|at| wanted(&buffers[*at]) == term).collect()
    };
    let mut incoming = with(|buffer| buffer.consumer);
    incoming.sort_by_key(|at| lanes[*at]);
    let mut outgoing = with(|buffer| buffer.producer);
    outgoing.sort_by_key(|at| Reverse(lanes[*at]));
    incoming.extend(outgoing);
    incoming
}

impl Route {
    /// Returns the points of the arrow, its two turns rounded.
    fn path(&self) -> Vec<Point> {
        let turn = TURN.min((self.to.1 - self.from.1) / 2.0);
        let centre = self.lane - turn;
        let arc = |y: f64, first: f64| {
            (0..=6).map(move |step| {
                let angle = first + f64::from(step) / 6.0 * FRAC_PI_2;
                (centre + turn * angle.cos(), y + turn * angle.sin())
            })
        };
        let mut points = vec![self.from];
        points.extend(arc(self.from.1 + turn, -FRAC_PI_2));
        points.extend(arc(self.to.1 - turn, 0.0));
        points.push(self.to);
        points
    }
}
