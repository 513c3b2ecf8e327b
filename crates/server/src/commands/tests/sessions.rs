//! Commands about sessions.

use super::{Running, ask, asks};
use serde_json::json;

#[test]
fn sessions_are_listed_and_ended() {
    asks("angarium session list --vhost v", "GET", "/v1/sessions?vhost=v", None);
    asks("angarium session end a/b", "DELETE", "/v1/sessions/%2F/a%2Fb", None);
    let running = Running::start();
    let broker = running.broker("guest");
    assert_eq!(ask(&broker, "angarium session list").unwrap(), json!([]));
    let error = ask(&broker, "angarium session end s").unwrap_err();
    assert_eq!(error, "no session 's' in vhost '/'");
}
