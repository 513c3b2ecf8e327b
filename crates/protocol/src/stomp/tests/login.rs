//! CONNECT, heart-beats and DISCONNECT.

use super::check_with;

#[track_caller]
fn check(transcript: &str) {
    check_with(None, transcript);
}

#[test]
fn versions_are_agreed_on() {
    check(
        "
        > CONNECT|login:guest|passcode:guest||
        < CONNECTED|S|heart-beat:0,0|version:1.0|host:/||
        b> STOMP|accept-version:1.1,1.2,2.0|host:/|login:guest|passcode:guest||
        b< CONNECTED|S|heart-beat:0,0|version:1.2|host:/||
        c> CONNECT|accept-version:1.0, 1.1|login:guest|passcode:guest||
        c< CONNECTED|S|heart-beat:0,0|version:1.1|host:/||
        d> CONNECT|accept-version:3.0||
        d< ERROR|message:Version mismatch||the client takes versions 3.0, and the broker speaks 1.0, \
          1.1 and 1.2
        d< closed
        e> CONNECT|login:guest|passcode:guest|accept-version:1.2^|host:/^||
        e< CONNECTED|S|heart-beat:0,0|version:1.2|host:/||
        ",
    );
}

#[test]
fn who_logs_in_how() {
    check(
        "
        > CONNECT|login:guest|passcode:wrong||
        < ERROR|message:Bad CONNECT||Access refused: the login or passcode is wrong
        < closed: login refused: wrong password for 'guest'
        b> CONNECT||
        b< CONNECTED|S|heart-beat:0,0|version:1.0|host:/||
        c> CONNECT|login:both|passcode:both|host:apart||
        c< CONNECTED|S|heart-beat:0,0|version:1.0|host:apart||
        d> CONNECT|login:UAPART|passcode:UAPART|host:broker.example||
        d< CONNECTED|S|heart-beat:0,0|version:1.0|host:apart||
        e> CONNECT|login:guest|passcode:guest|host:apart||
        e< ERROR|message:access_refused||access to virtual host 'apart' refused for user 'guest'
        e< closed: login refused: access to vhost 'apart' refused for user 'guest'
        log: user 'guest' has no rights in virtual host 'apart': `angarium permission set guest --vhost \
          apart` gives it some; from 127.0.0.1:9
        f> SEND|destination:/queue/a||x
        f< ERROR|message:Not connected||the first frame has to be CONNECT or STOMP
        f< closed
        ",
    );
}

#[test]
fn who_says_nothing_is_not_waited_for() {
    check(
        "
        > nothing
        > wait 9999
        > wait 1
        < ERROR|message:Not connected||no CONNECT frame within 10 s
        < closed
        ",
    );
}

#[test]
fn heart_beats_go_both_ways() {
    check(
        "
        > CONNECT|heart-beat:4000,10000||
        < CONNECTED|S|heart-beat:10000,4000|version:1.0|host:/||
        > wait 5000
        < |
        > |
        > wait 5000
        < |
        > wait 2999
        > wait 1
        < ERROR|message:Heart-beat missed||no heart-beat: the client was silent for 8 s
        < closed
        b> CONNECT|heart-beat:1,1||
        b< CONNECTED|S|heart-beat:1000,1000|version:1.0|host:/||
        c> CONNECT|heart-beat:0,0||
        c< CONNECTED|S|heart-beat:0,0|version:1.0|host:/||
        d> CONNECT|heart-beat:5||
        d< ERROR|message:Malformed frame||heart-beat is '5', and has to be two numbers of milliseconds
        d< closed
        c> wait 100000
        b< ERROR|message:Heart-beat missed||no heart-beat: the client was silent for 100 s
        b< closed
        ",
    );
}

#[test]
fn disconnect_ends_the_connection_behind_its_receipt() {
    check(
        "
        > CONNECT|accept-version:1.2||
        < CONNECTED|S|heart-beat:0,0|version:1.2|host:/||
        > SEND|destination:/queue/a|persistent:true||x
        > DISCONNECT|receipt:bye||
        < RECEIPT|receipt-id:bye||
        > wait 4999
        > wait 1
        < closed: closed by the client
        b> CONNECT||
        b< CONNECTED|S|heart-beat:0,0|version:1.0|host:/||
        b> DISCONNECT||
        b< closed: closed by the client
        ",
    );
}

#[test]
fn the_broker_says_why_it_ends_connections() {
    check(
        "
        > CONNECT||
        < CONNECTED|S|heart-beat:0,0|version:1.0|host:/||
        > shutdown the broker is shutting down
        < ERROR|message:Connection closed||the broker is shutting down
        < closed
        ",
    );
}
