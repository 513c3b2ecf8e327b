//! What decoding costs: `cargo test --release -p angarium-protocol amqp10 -- --ignored --nocapture speed`.

use crate::amqp10::codec::*;
use std::hint::black_box;

const RUNS: u32 = 50_000;

fn transfer(delivery_id: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let transfer = Transfer {
        handle: 0,
        delivery_id: Some(delivery_id),
        delivery_tag: Some(DeliveryTag(&[1, 2, 3, 4, 5, 6, 7, 8])),
        message_format: Some(0),
        settled: Some(false),
        ..Transfer::default()
    };
    transfer.write(&mut bytes);
    Header { durable: true, ..Header::default() }.write(&mut bytes);
    put_section(&mut bytes, SectionKind::Data, &&[7; 1024][..]);
    bytes
}

/// Prints the time of one run: the best of several measurements, because other programs disturb them.
#[allow(clippy::disallowed_methods, clippy::disallowed_macros)]
fn measure(name: &str, mut run: impl FnMut()) {
    let measurement = |_| {
        let start = std::time::Instant::now();
        (0..RUNS).for_each(|_| run());
        start.elapsed().as_nanos() as f64 / f64::from(RUNS)
    };
    let best = (0..40).map(measurement).fold(f64::MAX, f64::min);
    println!("{name}: {best:.1} ns");
}

#[test]
#[ignore = "measures, and judges nothing"]
fn speed_of_a_transfer() {
    let bytes = transfer(1 << 20);
    measure("decode_body of a transfer", || {
        let _ = black_box(decode_body::<Transfer<'_>>(black_box(&bytes)));
    });
    measure("Performative::decode_body of a transfer", || {
        let _ = black_box(Performative::decode_body(black_box(&bytes)));
    });
    let (transfer, payload) = decode_body::<Transfer<'_>>(&bytes).unwrap();
    let limits = Limits { properties_bytes_max: 4096 };
    measure("Sections::walk of header and data", || {
        let _ = black_box(Sections::walk(black_box(payload), limits));
    });
    let mut out = Vec::with_capacity(4096);
    measure("write_frame of a transfer with 1 KiB", || {
        out.clear();
        write_frame(black_box(&transfer), 1, payload, &mut out);
        black_box(&out);
    });
    let mut body = Vec::new();
    let disposition = Disposition {
        role: Role::Receiver,
        first: 1 << 20,
        last: Some((1 << 20) + 10),
        settled: true,
        state: Some(ACCEPTED),
        batchable: false,
    };
    Performative::Disposition(disposition).write(&mut body);
    measure("decode_body of a disposition", || {
        let _ = black_box(decode_body::<Disposition<'_>>(black_box(&body)));
    });
    measure("Performative::decode_body of a disposition", || {
        let _ = black_box(Performative::decode_body(black_box(&body)));
    });
}
