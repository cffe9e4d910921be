#!/usr/bin/env node
// Starts the program of the package for this platform in its place: same streams, same signals, same exit code.
"use strict";
const { spawn } = require("node:child_process");
const { isatty } = require("node:tty");

const name = `@roost-dev/roost-${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "roost.exe" : "roost";
let program;
try {
  program = require.resolve(`${name}/bin/${file}`);
} catch {
  console.error(`roost: start the program: the package ${name} is not installed`);
  console.error("  try: npm install -g @roost-dev/roost --include=optional");
  console.error("  other ways to install it: https://github.com/roost-dev/roost");
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => {
    // A terminal gives Ctrl-C to the program too, and a second one would end it at once.
    if (signal !== "SIGINT" || !isatty(0)) child.kill(signal);
  });
}
child.on("error", (error) => {
  console.error(`roost: start ${program}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  for (const handled of ["SIGINT", "SIGTERM", "SIGHUP"]) process.removeAllListeners(handled);
  process.kill(process.pid, signal);
});
