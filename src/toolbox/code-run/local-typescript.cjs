// Lets a program require TypeScript files. For example, `./a`, `./a.ts` and `./a.js` all load `a.ts`. `transform` is the
// function of sucrase that removes types, because Node before version 22 cannot do that.
;(transform) => {
  const Module = require('node:module')
  const { readFileSync } = require('node:fs')
  const compile = (module, filename) => {
    const transforms = ['typescript', 'imports', ...(filename.endsWith('x') ? ['jsx'] : [])]
    const { code } = transform(readFileSync(filename, 'utf8').replace(/^#!/, '//'), { transforms, filePath: filename })
    module._compile(code, filename)
  }
  for (const ending of ['.ts', '.tsx', '.mts', '.cts']) Module._extensions[ending] = compile
  const resolve = Module._resolveFilename
  Module._resolveFilename = function (request, ...rest) {
    try {
      return resolve.call(this, request, ...rest)
    } catch (error) {
      const source = request.replace(/\.([cm]?)js(x?)$/, '.$1ts$2')
      if (source === request || error.code !== 'MODULE_NOT_FOUND') throw error
      return resolve.call(this, source, ...rest)
    }
  }
}
