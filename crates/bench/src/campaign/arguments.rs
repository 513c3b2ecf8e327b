//! The command line of presets: which presets, which brokers, their parameters, and where results go.

use super::folder::Folder;
use super::run::{Campaign, Task};
use super::side::{Origin, Side};
use crate::client::Target;
use crate::interrupt;
use crate::load::{self, idle};
use crate::output;
use crate::peer::{FOREIGN, Kind, Level, Programs};
use crate::preset::{self, Preset, Setting};
use crate::report::{self, FORMAT, Machine, Report};
use crate::secrets;
use clap::Args;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// The descriptor limit that is asked for: sockets of the tool, or of a broker.
const DESCRIPTORS: u64 = 25_000;

/// What to measure and with what.
#[derive(Debug, Args)]
pub(crate) struct PresetArguments {
    /// Names of presets, or `all`; `bench list` has them
    #[arg(required = true)]
    presets: Vec<String>,
    /// A broker that runs already; the password of its user from ANGARIUM_PASSWORD, or from the file that
    /// ANGARIUM_PASSWORD_FILE names
    #[arg(long, value_parser = Target::given)]
    target: Vec<Target>,
    /// A broker to start, such as rabbitmq, or rabbitmq:stomp for another of its protocols; may be
    /// given several times, the same twice for the noise of the machine [default: angarium]
    #[arg(long, value_name = "NAME[:SCHEME]")]
    peer: Vec<String>,
    /// Where a peer's program is
    #[arg(long, value_name = "NAME=PATH")]
    program: Vec<String>,
    /// The process of the running broker [default: the one that listens on the port here]
    #[arg(long)]
    pid: Option<u32>,
    /// What a confirm of the running broker means
    #[arg(long, value_enum)]
    durability: Option<Level>,
    /// Smaller numbers than in the texts: all presets end within ten minutes
    #[arg(long)]
    quick: bool,
    /// Change a parameter, of one preset by PRESET.NAME=VALUE; a value may be a list 1,2,5 or a range
    /// 1..9
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// A file with such NAME=VALUE lines
    #[arg(long)]
    parameters: Option<PathBuf>,
    /// Runs of each case on each broker, in turn
    #[arg(long)]
    runs: Option<u32>,
    /// Seconds without any progress after which missing messages count as lost
    #[arg(long, default_value_t = load::DRAIN.as_secs_f64())]
    drain: f64,
    /// Add a second copy of the first broker: its difference is the noise of the machine
    #[arg(long)]
    noise: bool,
    /// Where started brokers keep their data; its disk is measured
    #[arg(long, default_value = "bench-data")]
    folder: PathBuf,
    /// Write the results here
    #[arg(short, long, default_value = "bench-result.json")]
    output: PathBuf,
    /// Write a page with charts here [default: beside the results, as .html]
    #[arg(long)]
    html: Option<PathBuf>,
    /// Let a worker at HOST:PORT run a part of each load; may be given several times. Workers get the target
    /// with its password, in the clear
    #[arg(long, value_name = "HOST:PORT")]
    worker: Vec<String>,
    /// Print the result only
    #[arg(long)]
    quiet: bool,
}

/// Two result files to compare.
#[derive(Debug, Args)]
pub(crate) struct DiffArguments {
    /// The result before
    a: PathBuf,
    /// The result after
    b: PathBuf,
    /// Write a page with the charts of both here
    #[arg(long)]
    html: Option<PathBuf>,
}

/// Where peers are.
#[derive(Debug, Args)]
pub(crate) struct PeersArguments {
    /// Where a peer's program is
    #[arg(long, value_name = "NAME=PATH")]
    program: Vec<String>,
}

/// Lists the brokers that can be started here.
pub(crate) fn peers(arguments: &PeersArguments) -> Result<(), String> {
    let programs = Programs::parse(&arguments.program)?;
    for kind in Kind::all() {
        let schemes = kind.schemes().join(", ");
        match kind.find(&programs) {
            Some(program) => {
                let (version, program) = (kind.version(&program), program.display());
                output::line(&format!("{:<10} {version:<20} {schemes:<18} {program}", kind.name()));
            }
            None => output::line(&format!("{:<10} not here; {}", kind.name(), kind.hint())),
        }
    }
    for (name, speaks) in FOREIGN {
        output::line(&format!(
            "{name:<10} cannot be measured: it speaks {speaks}, of which there is no driver"
        ));
    }
    output::line("\nAny other: start it, and name it by --target.");
    Ok(())
}

/// Runs the presets. `true` if nothing failed.
pub(crate) fn run(arguments: &PresetArguments, json: bool) -> Result<bool, String> {
    interrupt::install().map_err(|error| format!("signals: {error}"))?;
    let tasks = arguments.tasks()?;
    let drain = Duration::try_from_secs_f64(arguments.drain)
        .map_err(|_| format!("--drain {} is not a number of seconds", arguments.drain))?;
    let programs = Programs::parse(&arguments.program)?;
    let origins = arguments.origins()?;
    let output = &arguments.output;
    let html = arguments.html.clone().unwrap_or_else(|| output.with_extension("html"));
    [output, &html].into_iter().try_for_each(|path| check_writable(path))?;
    origins.iter().try_for_each(|origin| origin.check(&programs))?;
    let folder = Folder::create(&arguments.folder)?;
    let sides = Side::all(origins, folder.path());
    // Brokers inherit the limit.
    idle::raise_descriptor_limit(DESCRIPTORS);
    let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let mut report = Report {
        format: FORMAT,
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args().map(|word| secrets::without_password(&word)).collect(),
        started_unix_s: started.map_or(0, |since| since.as_secs()),
        machine: Machine::here(folder.path()),
        partial: Some("it has not ended".to_owned()),
        workers: arguments.worker.clone(),
        sides: sides.iter().map(Side::info).collect(),
        ..Report::default()
    };
    let start = Instant::now();
    let campaign = Campaign {
        tasks,
        sides,
        programs: &programs,
        folder: folder.path(),
        drain,
        workers: &arguments.worker,
        quiet: arguments.quiet,
    };
    campaign.run(&mut report, &|report| {
        if let Err(why) = save(report, output, &html) {
            eprintln!("bench: {why}");
        }
    });
    report.took_s = start.elapsed().as_secs_f64();
    save(&report, output, &html)?;
    if json {
        output::line(&serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?);
    } else {
        show(&report, output, &html);
    }
    Ok(report.is_clean() && report.partial.is_none())
}

/// Prints the result as text.
fn show(report: &Report, output: &Path, html: &Path) {
    let down = report.down();
    for preset in &report.presets {
        output::put(&report::preset_table(report, preset));
    }
    down.iter().for_each(|line| output::line(line));
    if report.presets.len() > 1 && down.len() < report.sides.len() {
        output::put(&format!("\n{}", report::summary(report)));
    }
    output::line(&format!("\n{}", report.machine.describe()));
    if let Some(noise) = report::noise(report) {
        output::line(&format!("two copies of one broker differ by up to {:.0}%", noise * 100.0));
    }
    output::line(&format!("{} and {}, {:.0} s", output.display(), html.display(), report.took_s));
    if let Some(why) = &report.partial {
        output::line(&format!("PARTIAL: {why}"));
    }
}

/// Fails early if a result could not be written to `path`. A file that is there stays as it is.
fn check_writable(path: &Path) -> Result<(), String> {
    let was_there = path.exists();
    let opened = fs::OpenOptions::new().append(true).create(true).open(path);
    let removed = |_| if was_there { Ok(()) } else { fs::remove_file(path) };
    opened.and_then(removed).map_err(|error| format!("{}: {error}", path.display()))
}

fn save(report: &Report, output: &Path, html: &Path) -> Result<(), String> {
    let json = serde_json::to_string(report).map_err(|error| error.to_string())?;
    let write = |path: &Path, text: &str| {
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    write(output, &json)?;
    write(html, &report::page(report))
}

/// Prints what changed between two result files.
pub(crate) fn diff(arguments: &DiffArguments) -> Result<(), String> {
    let read = |path: &Path| -> Result<Report, String> {
        let text =
            fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let report: Report = serde_json::from_str(&text)
            .map_err(|error| format!("{} is no result: {error}", path.display()))?;
        if report.format != FORMAT {
            let found = report.format;
            return Err(format!("{}: format {found}, this version has {FORMAT}", path.display()));
        }
        Ok(report)
    };
    let (a, b) = (read(&arguments.a)?, read(&arguments.b)?);
    let diff = report::diff(&a, &b);
    output::put(&diff.text);
    if let Some(html) = &arguments.html {
        fs::write(html, report::page(&diff.both))
            .map_err(|error| format!("{}: {error}", html.display()))?;
    }
    Ok(())
}

impl PresetArguments {
    fn presets(&self) -> Result<Vec<&'static Preset>, String> {
        if self.presets.iter().any(|name| name == "all") {
            return Ok(preset::all().collect());
        }
        let mut presets = Vec::new();
        for name in &self.presets {
            // A text's name stands for all its presets: `pang`, `osu`, `solace`, `xmlblaster`.
            let begins = format!("{name}-");
            let found: Vec<_> = preset::all()
                .filter(|it| it.name == *name || it.name.starts_with(&begins))
                .collect();
            if found.is_empty() {
                return Err(format!("no preset `{name}`; `bench list` names them"));
            }
            presets.extend(found);
        }
        Ok(presets)
    }

    fn settings(&self) -> Result<Vec<Setting>, String> {
        let mut settings = Vec::new();
        if let Some(path) = &self.parameters {
            let named = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
            let text = fs::read_to_string(path).map_err(|error| named(&error))?;
            settings = Setting::parse_lines(&text).map_err(|why| named(&why))?;
        }
        for text in &self.set {
            settings.push(Setting::parse(text)?);
        }
        if let Some(runs) = self.runs {
            let (name, value) = ("runs".to_owned(), runs.to_string());
            settings.push(Setting { preset: None, name, value });
        }
        Ok(settings)
    }

    fn tasks(&self) -> Result<Vec<Task>, String> {
        let settings = self.settings()?;
        let presets = self.presets()?;
        let mut used = vec![false; settings.len()];
        let mut tasks = Vec::new();
        for preset in presets {
            let mut parameters = preset.defaults(self.quick);
            for (setting, used) in settings.iter().zip(&mut used) {
                let concerned = match &setting.preset {
                    Some(name) => *name == preset.name,
                    None => parameters.has(&setting.name),
                };
                if concerned {
                    let set = parameters.set(&setting.name, &setting.value);
                    set.map_err(|why| format!("{}: {why}", preset.name))?;
                    *used = true;
                }
            }
            if parameters.has("runs") && parameters.count("runs") == 0 {
                return Err(format!("{}: `runs` must be 1 at least", preset.name));
            }
            tasks.push(Task { preset, parameters, quick: self.quick });
        }
        match settings.iter().zip(&used).find(|(_, used)| !**used) {
            Some((Setting { preset: None, name, .. }, _)) => {
                Err(format!("no selected preset has a parameter `{name}`"))
            }
            Some((Setting { preset: Some(preset), name, .. }, _)) => {
                Err(format!("`{preset}.{name}` is not a parameter of a selected preset"))
            }
            None => Ok(tasks),
        }
    }

    fn origins(&self) -> Result<Vec<Origin>, String> {
        let level = self.durability.unwrap_or_default();
        let running =
            |target: &Target| Origin::Running { target: target.clone(), pid: self.pid, level };
        let mut origins: Vec<Origin> = self.target.iter().map(running).collect();
        for peer in &self.peer {
            origins.push(Origin::peer(peer)?);
        }
        if origins.is_empty() {
            origins.push(Origin::peer(Kind::Angarium.name())?);
        }
        let started = |origin: &Origin| matches!(origin, Origin::Started { .. });
        if origins.iter().any(started)
            && let Some(worker) = self.worker.iter().find(|worker| !is_loopback(worker))
        {
            let why = "brokers that are started here listen on the loopback address";
            return Err(format!(
                "{why}, which {worker} does not reach: start one, and name it by --target"
            ));
        }
        if self.noise {
            origins.insert(1, origins[0].clone());
        }
        Ok(origins)
    }
}

fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host == "localhost" || host == "[::1]" || host.starts_with("127.")
}
