// What the suites in JavaScript share: cases, the loop that runs them, and waits with an end.
'use strict';

// The longest wait for anything that must come.
const PATIENCE_MS = 10_000;
// How long nothing must come before it counts as "does not come".
const SILENCE_MS = 200;

const cases = [];

/** Registers a case; it is skipped where a variable of the environment is missing. */
function test(name, body, needs = '') {
  cases.push({ name, body, needs });
}

/** Fails when the promise takes too long. */
function within(promise, what, time = PATIENCE_MS) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited in vain for ${what}`)), time);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Runs all cases, or those whose name contains an argument, each in a world of its own; ends the process. */
async function run(World) {
  let failed = 0;
  const chosen = process.argv.slice(2);
  for (const { name, body, needs } of cases) {
    if (chosen.length && !chosen.some((part) => name.includes(part))) continue;
    if (needs && !process.env[needs]) {
      console.log(`skip ${name}: the environment lacks it`);
      continue;
    }
    const world = new World();
    try {
      await within(body(world), 'the end of the case', 3 * PATIENCE_MS);
      await within(world.close(), 'cleaning up');
      console.log(`pass ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL ${name}: ${error.message}`);
      console.error(error.stack);
      await within(world.close(), 'cleaning up').catch(() => {});
    }
  }
  process.exit(failed ? 1 : 0);
}

module.exports = { test, within, run, PATIENCE_MS, SILENCE_MS };
