// Runs code that may be a module. `node -` takes it for a script, and older versions cannot find out by themselves.
// A script that compiles is run as one. What does not compile as a script is run as a module, by a process of its own: only a
// new one can be told so.
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
