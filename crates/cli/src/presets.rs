//! Configurations compiled into the program. Their text is what `presets/` holds; nothing is interpreted here but
//! the first comment line, which says what a preset is for.

/// A named configuration.
pub struct Preset {
    /// Name on the command line.
    pub name: &'static str,
    /// Its TOML text.
    pub text: &'static str,
}

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        &[$(Preset { name: $name, text: include_str!(concat!("../../../presets/", $name, ".toml")) }),*]
    };
}

/// Every preset, the one run without arguments first.
pub const PRESETS: &[Preset] = presets![
    "default",
    "small",
    "small-iblurry",
    "mid",
    "paper-cifar100",
    "paper-cifar100-sc",
    "paper-imagenet100",
    "paper-cifar10",
    "paper-blurry",
    "paper-iblurry",
    "dpcl-literal",
    "dpcl-pfi",
];

impl Preset {
    /// What it is for.
    pub fn about(&self) -> &'static str {
        let line = self.text.lines().find_map(|line| line.strip_prefix('#'));
        line.map_or("", str::trim)
    }
}

/// The preset of that name.
pub fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// Names of all presets.
pub fn names() -> Vec<&'static str> {
    PRESETS.iter().map(|preset| preset.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_says_what_it_is_for() {
        for preset in PRESETS {
            assert!(preset.about().ends_with('.'), "{}: {:?}", preset.name, preset.about());
        }
    }

    #[test]
    fn every_file_in_the_folder_is_compiled_in() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../presets");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        files.sort();
        let mut names = names();
        names.sort_unstable();
        assert_eq!(files, names);
    }
}
