//! scratch
use dpcl::{Config, Image, Learner, Shape, random::Random};
use std::time::Instant;
fn main() {
    let model = std::env::args().nth(1).unwrap_or("slim".into());
    let classes: usize = std::env::args().nth(2).and_then(|x| x.parse().ok()).unwrap_or(20);
    let rounds: usize = std::env::args().nth(3).and_then(|x| x.parse().ok()).unwrap_or(10);
    let variants = [
        ("er", "method='er'\ncutmix_prob=0.0"),
        ("dpcl", "method='dpcl'\n[dpcl]\nperiod=100"),
        ("dpcl-depth0", "method='dpcl'\n[dpcl]\nperiod=100\nlayers=[0]"),
        ("dpcl-depth1", "method='dpcl'\n[dpcl]\nperiod=100\nlayers=[1]"),
        ("no-pfi", "method='dpcl'\n[dpcl]\nperiod=100\npfi=false"),
        ("no-mi", "method='dpcl'\nmemory_scheme='reservoir'\nrate='exp-reset'\n[dpcl]\npfi=false"),
    ];
    let mut random = Random::named(1, "x");
    let images: Vec<(Image, usize)> = (0..256)
        .map(|i| {
            let pixels: Vec<u8> = (0..32 * 32 * 3).map(|_| random.below(256) as u8).collect();
            (Image { height: 32, width: 32, pixels: pixels.into() }, i % classes)
        })
        .collect();
    let mut learners: Vec<_> = variants
        .iter()
        .map(|(name, text)| {
            let c = Config::from_toml(&format!("model='{model}'\nmemory=200\nupdates=3.0\n{text}")).unwrap();
            let mut l = Learner::new(&c, Shape { channels: 3, height: 32, width: 32 }).unwrap();
            let warm = Config::from_toml("").unwrap();
            let _ = warm;
            for (image, class) in images.iter().take((classes.div_ceil(8) * 8).max(80)) {
                l.observe(image, *class).unwrap();
            }
            (name, l, Vec::new())
        })
        .collect();
    for _ in 0..rounds {
        for (_, l, times) in &mut learners {
            let t = Instant::now();
            let mut steps = 0;
            for (image, class) in images.iter().take(8) {
                steps += l.observe(image, *class).unwrap().steps.len();
            }
            times.push(t.elapsed().as_secs_f64() * 1e3 / steps as f64);
        }
    }
    let mut base = 0.0;
    for (name, _, times) in &mut learners {
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        if base == 0.0 {
            base = median;
        }
        println!("{name:12} median {median:.2} ms min {:.2} ratio {:.3}", times[0], median / base);
    }
}
