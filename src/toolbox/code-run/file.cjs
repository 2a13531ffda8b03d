// Runs code as `node FILE` would run a file in the working directory, but makes no file. `__filename`, `__dirname` and
// `require` behave as in such a file. A worker that is started with the path of this file runs the code again.
;(function run(code, name) {
  const Module = require('node:module')
  const { join } = require('node:path')
  const threads = require('node:worker_threads')
  const file = join(process.cwd(), name)
  const isOwn = (given) => given === file || (given instanceof URL && given.href === `file://${file}`)
  const { Worker } = threads
  threads.Worker = class extends Worker {
    constructor(given, options) {
      const again = `(${run})(${JSON.stringify(code)},${JSON.stringify(name)})`
      super(isOwn(given) ? again : given, isOwn(given) ? { ...options, eval: true } : options)
    }
  }
  Module.syncBuiltinESMExports()
  const module = new Module('.')
  module.filename = file
  module.paths = Module._nodeModulePaths(process.cwd())
  process.mainModule = module
  process.setSourceMapsEnabled(true)
  module._compile(code, file)
})
