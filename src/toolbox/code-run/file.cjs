// Runs code as `node FILE` would run a file of the working directory, without making one: with __filename, __dirname and what is
// required from there. A worker that is given that file runs the code.
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
