//! ActiveMQ Artemis and Classic: configured to listen on loopback and to keep all data in one folder.

use super::command::{Foreground, loopback};
use super::configuration;
use super::port::free_port;
use crate::client::Error;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// Creates an Artemis instance, whose one port speaks all its protocols.
pub(super) fn artemis(program: &str, folder: &Path, port: u16) -> Result<Foreground, Error> {
    let instance = folder.join("instance");
    let flags = [
        "create",
        "--silent",
        "--allow-anonymous",
        "--user",
        "bench",
        "--password",
        "bench",
        "--host",
        "127.0.0.1",
        "--no-web",
        "--no-amqp-acceptor",
        "--no-mqtt-acceptor",
        "--no-stomp-acceptor",
        "--no-hornetq-acceptor",
        "--default-port",
    ];
    let (port_text, place) = (port.to_string(), instance.to_string_lossy().into_owned());
    let flags = flags.into_iter().chain([port_text.as_str(), &place]).map(str::to_owned);
    let create: Vec<String> = std::iter::once(program.to_owned()).chain(flags).collect();
    let output = Command::new(program).args(&create[1..]).output()?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(format!("artemis create: {stderr}")).into());
    }
    // Its durable queues wait for the disk by default; `create` has measured the disk.
    let path = instance.join("etc/broker.xml");
    // Without these prefixes, STOMP queues are topics that drop messages without subscribers.
    let kinds = "anycastPrefix=/queue/;multicastPrefix=/topic/;protocols=";
    let file = fs::read_to_string(&path)?.replacen("protocols=", kinds, 1);
    fs::write(&path, &file)?;
    let login = "bench:bench@127.0.0.1";
    let targets =
        ["stomp", "mqtt", "mqtt5"].map(|scheme| format!("{scheme}://{login}:{port}").parse());
    let targets = targets.into_iter().collect::<Result<_, _>>().map_err(io::Error::other)?;
    let created = configuration::line(&create);
    Ok(Foreground {
        command: vec![
            instance.join("bin/artemis").to_string_lossy().into_owned(),
            "run".to_owned(),
        ],
        targets,
        files: Some(format!("# made by\n{created}\n# etc/broker.xml\n{file}")),
    })
}

/// The configuration of ActiveMQ Classic. Flushing every synchronous write is its default; stated here
/// since durability rests on it.
const CLASSIC: &str = r#"<beans xmlns="http://www.springframework.org/schema/beans"
  xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
  xsi:schemaLocation="http://www.springframework.org/schema/beans
  http://www.springframework.org/schema/beans/spring-beans.xsd
  http://activemq.apache.org/schema/core http://activemq.apache.org/schema/core/activemq-core.xsd">
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="bench" useJmx="false"
      dataDirectory="FOLDER">
    <persistenceAdapter>
      <kahaDB directory="FOLDER/kahadb" journalDiskSyncStrategy="always"/>
    </persistenceAdapter>
    <transportConnectors>
      <transportConnector name="stomp" uri="stomp://127.0.0.1:STOMP"/>
      <transportConnector name="mqtt" uri="mqtt://127.0.0.1:MQTT"/>
    </transportConnectors>
  </broker>
</beans>
"#;

/// Configures ActiveMQ Classic, which has a port per protocol.
pub(super) fn classic(program: &str, folder: &Path, stomp: u16) -> Result<Foreground, Error> {
    let mqtt = free_port()?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let file = CLASSIC
        .replace("FOLDER", &text(folder))
        .replace("STOMP", &stomp.to_string())
        .replace("MQTT", &mqtt.to_string());
    let path = folder.join("activemq.xml");
    fs::write(&path, &file)?;
    // Its script leaves the broker as a child of a shell, so the broker is started without it, as the
    // script would.
    let script = Path::new(program).canonicalize()?;
    let home = script.ancestors().nth(2).unwrap_or(&script);
    let jar = script.with_extension("jar");
    if !jar.is_file() {
        return Err(io::Error::other(format!("{} is not there", jar.display())).into());
    }
    let flags = ["java", "-Xms64M", "-Xmx1G", "-Djava.awt.headless=true", "-jar", &text(&jar)];
    let mut command: Vec<String> = flags.map(str::to_owned).into();
    let place = |(name, path)| format!("-D{name}={}", text(path));
    let places = [
        ("java.io.tmpdir", folder),
        ("activemq.home", home),
        ("activemq.base", home),
        ("activemq.conf", folder),
        ("activemq.data", folder),
    ];
    command.splice(1..1, places.map(place));
    command.extend(["start".to_owned(), format!("xbean:file:{}", text(&path))]);
    let targets = vec![loopback("stomp", stomp)?, loopback("mqtt", mqtt)?];
    Ok(Foreground { command, targets, files: Some(file) })
}
