// Runs code that may be a script or an ES module. `node -` always reads a script, and older versions of Node cannot detect
// modules. Code that compiles as a script is run as a script. Other code is run as a module, in a new process with
// `--input-type=module`, because a running process cannot change its input type.
;(source, prelude, isModule, script) => {
  const { Script } = require('node:vm')
  const { spawnSync } = require('node:child_process')
  const compiles = () => {
    try {
      return new Script(source, { filename: '[stdin]' }) !== undefined
    } catch (error) {
      if (error instanceof SyntaxError) return false
      throw error
    }
  }
  // Unlike a Script, code in eval may import modules in every version of Node.
  // biome-ignore lint/security/noGlobalEval: running the code is what this is for
  // biome-ignore lint/complexity/noCommaOperator: eval by another name runs in the global scope
  if (!isModule && compiles()) return (0, eval)(script)
  const args = [...process.execArgv, '--input-type=module', '-', ...process.argv.slice(1)]
  const stdio = ['pipe', 'inherit', 'inherit']
  const { status, signal, error } = spawnSync(process.execPath, args, { input: prelude + source, stdio })
  if (error) throw error
  if (signal) process.kill(process.pid, signal)
  process.exit(status)
}
