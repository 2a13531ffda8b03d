import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname as dirnameOf, join } from 'node:path'
import { suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { until } from '../agent/testing/native-agent.ts'
import { startToolbox } from '../testing/toolbox.ts'

const codeRun = '/process/code-run'

const has = (program: string) => {
  try {
    return execFileSync('sh', ['-c', `command -v ${program}`]).length > 0
  } catch {
    return false
  }
}
const needsPython = has('python3') ? {} : { skip: 'needs python3' }

suite('POST /process/code-run', () => {
  test(
    'POST /process/code-run answers without the field `artifacts` if the code makes no charts',
    needsPython,
    async () => {
      await using box = await startToolbox()
      const reply = await box.post(codeRun, { code: 'print(1 + 1)', language: 'python' })
      assert.deepEqual(reply, { status: 200, body: { exitCode: 0, result: '2\n' } })
    },
  )

  test('POST /process/code-run answers 400 if the code or language is missing or a field is invalid', async () => {
    await using box = await startToolbox()
    for (const body of [
      { code: '', language: 'python' },
      { code: ' \n', language: 'python' },
      { language: 'python' },
      { code: 'x', language: 'ruby' },
      { code: 'x', language: 'Python' },
      { code: 'x', argv: 'a' },
      { code: 'x', argv: [1] },
      { code: 'x', timeout: -1 },
      { code: 'x', envs: { 'A-B': '' } },
      { code: 'x', argv: ['a\0b'] },
    ]) {
      assert.equal((await box.post(codeRun, body)).status, 400, JSON.stringify(body))
    }
  })

  test('POST /process/code-run runs the sandbox’s language by default, or python if that language is unknown', async () => {
    await using script = await startToolbox({ language: 'javascript' })
    assert.equal((await script.post(codeRun, { code: 'console.log(typeof require)' })).body.result, 'function\n')
    await using other = await startToolbox({ language: 'ruby' })
    if (has('python3')) assert.equal((await other.post(codeRun, { code: 'print(None)' })).body.result, 'None\n')
  })

  test('POST /process/code-run answers 200 even if the program fails', async () => {
    await using box = await startToolbox()
    const { status, body } = await box.post(codeRun, { code: 'process.exit(3)', language: 'javascript' })
    assert.deepEqual([status, body], [200, { exitCode: 3, result: '' }])
  })

  test('POST /process/code-run answers 200 with exit code -1 and the reason if the image lacks the interpreter', async () => {
    await using box = await startToolbox()
    const { status, body } = await box.post(codeRun, { code: 'x', language: 'python', envs: { PATH: box.directory } })
    assert.deepEqual([status, body.exitCode], [200, -1])
    assert.match(body.result, /python3 could not be started/)
  })

  test('POST /process/code-run answers 408 after the call’s timeout', needsPython, async () => {
    await using box = await startToolbox()
    const { status, body } = await box.post(codeRun, { code: 'while True: pass', language: 'python', timeout: 1 })
    assert.deepEqual([status, body.code], [408, 'PROCESS_EXECUTION_TIMEOUT'])
    assert.match(body.message, /timeout/)
  })

  test('POST /process/code-run starts a new process in the user’s home for each call', needsPython, async () => {
    await using box = await startToolbox()
    await box.post(codeRun, { code: 'x = 1', language: 'python' })
    const { body } = await box.post(codeRun, { code: 'import os\nprint(os.getcwd())\nprint(x)', language: 'python' })
    assert.equal(body.exitCode, 1)
    assert.match(body.result, new RegExp(`^${process.env['HOME'] ?? ''}\n`))
    assert.match(body.result, /NameError/)
  })
})

suite('POST /process/code-run: python', needsPython, () => {
  test('Python code gets its arguments unchanged, after "-" as the first of sys.argv', async () => {
    await using box = await startToolbox()
    const argv = ['a b', '"quoted"', '$HOME', '--flag', '']
    const { body } = await box.post(codeRun, { code: 'import sys; print(sys.argv)', language: 'python', argv })
    assert.equal(body.result, `['-', 'a b', '"quoted"', '$HOME', '--flag', '']\n`)
  })

  test('the output of Python code contains standard output and standard error in the order of writing', async () => {
    await using box = await startToolbox()
    const code = 'import sys\nfor i in range(3):\n  print("o", i)\n  print("e", i, file=sys.stderr)'
    const { body } = await box.post(codeRun, { code, language: 'python', envs: { LANG: 'C.UTF-8' } })
    assert.equal(body.result, 'o 0\ne 0\no 1\ne 1\no 2\ne 2\n')
  })

  test('Python code can use multiprocessing with spawn, inspect.getsource and `__file__`', async () => {
    await using box = await startToolbox()
    const run = async (code: string) => (await box.post(codeRun, { code, language: 'python' })).body
    const spawn =
      'import multiprocessing as m\ndef double(x):\n  return 2 * x\nif __name__ == "__main__":\n' +
      '  with m.get_context("spawn").Pool(2) as pool:\n    print(pool.map(double, [1, 2]), pool.map(abs, [-1]))'
    assert.deepEqual(await run(spawn), { exitCode: 0, result: '[2, 4] [1]\n' })
    const source =
      'import inspect\ndef f():\n  pass  # here\nprint(inspect.getsource(f))\nprint(open(__file__).read(14))'
    assert.equal((await run(source)).result, 'def f():\n  pass  # here\n\nimport inspect\n')
  })

  test('Python code can spawn processes without `if __name__ == "__main__"`; they do not run the code again', async () => {
    await using box = await startToolbox()
    const run = async (code: string) => (await box.post(codeRun, { code, language: 'python', timeout: 20 })).body
    const builtIn = 'import multiprocessing as m; print(m.get_context("spawn").Pool(2).map(abs, [-1]), __file__[:6])'
    assert.deepEqual(await run(builtIn), { exitCode: 0, result: '[1] /proc/\n' })
    const otherGuard =
      'import multiprocessing as m\ndef double(x):\n  return 2 * x\nif m.current_process().name == "MainProcess":\n' +
      '  with m.get_context("spawn").Pool(1) as pool:\n    print(pool.map(double, [1]))'
    assert.deepEqual(await run(otherGuard), { exitCode: 0, result: '[2]\n' })
  })

  test('a `coding` comment in Python code has no effect, because the code is always read as UTF-8', async () => {
    await using box = await startToolbox()
    for (const encoding of ['utf-8', 'utf8', 'latin-1', 'cp1252'])
      for (const rest of ['print("é")', 'import os\nprint("é")']) {
        const code = `# -*- coding: ${encoding} -*-\n${rest}`
        const { body } = await box.post(codeRun, { code, language: 'python', envs: { LANG: 'C.UTF-8' } })
        assert.deepEqual(body, { exitCode: 0, result: 'é\n' }, code)
      }
  })

  test('Python code is the main module, sees no Python variables of Alcove, and has empty standard input', async () => {
    await using box = await startToolbox()
    const run = async (code: string) => (await box.post(codeRun, { code, language: 'python' })).body
    const names = await run('print(sorted(n for n in dir() if not n.startswith("__")), __name__)')
    assert.equal(names.result, '[] __main__\n')
    assert.match((await run('input()')).result, /^Traceback [^\n]*\n {2}File "<stdin>", line 1[\s\S]*EOFError/)
    assert.equal((await run('import sys; sys.exit(7)')).exitCode, 7)
    assert.match((await run('x = 1\ndef f(:\n')).result, /^ {2}File "<stdin>", line 2\n/)
    assert.match((await run('import os, signal; os.kill(os.getpid(), signal.SIGTERM)')).result, /^$/)
  })

  test('Python code of 1 MiB runs, and can read the environment variables that the call sets', async () => {
    await using box = await startToolbox()
    const code = `import os\nx = "${'y'.repeat(1024 * 1024)}"\nprint(len(x), os.environ["MINE"])`
    const { body } = await box.post(codeRun, { code, language: 'python', envs: { MINE: 'é' } })
    assert.equal(body.result, '1048576 é\n')
  })
})

suite('POST /process/code-run: javascript', () => {
  test('JavaScript code runs as CommonJS, with its arguments from process.argv[1] on', async () => {
    await using box = await startToolbox()
    const code = 'const { sep } = require("node:path"); console.log(sep, process.argv.slice(1), typeof module)'
    const { body } = await box.post(codeRun, { code, language: 'javascript', argv: ['a b', '--c'] })
    assert.equal(body.result, "/ [ 'a b', '--c' ] object\n")
  })

  test('JavaScript code is the main module, and its errors quote a line of that code', async () => {
    await using box = await startToolbox()
    const run = async (code: string) => (await box.post(codeRun, { code, language: 'javascript' })).body
    assert.equal((await run('if (require.main === module) console.log("main")')).result, 'main\n')
    assert.match((await run('throw new Error("here")')).result, /^\[stdin\]:1\nthrow new Error\("here"\)\n\^\n/)
    assert.equal((await run('console.log(process.execArgv)')).result, '[]\n')
  })

  test('JavaScript code may use strict mode and begin with `#!`; its errors have the right line numbers', async () => {
    await using box = await startToolbox()
    const run = async (code: string) => (await box.post(codeRun, { code, language: 'javascript' })).body
    assert.equal(
      (
        await run(
          '"use strict"\nconsole.log(this === undefined || (() => { try { undeclared = 1 } catch { return 1 } })())',
        )
      ).result,
      '1\n',
    )
    assert.equal((await run('#!/usr/bin/env node\nconsole.log(1)')).result, '1\n')
    const failed = await run('\n\nthrow new Error("here")')
    assert.equal(failed.exitCode, 1)
    assert.match(failed.result, /\[stdin\]:3/)
  })
})

suite('POST /process/code-run: javascript modules', () => {
  const run = async (code: string, more: object = {}) => {
    await using box = await startToolbox()
    return (await box.post(codeRun, { code, language: 'javascript', ...more })).body
  }

  test('JavaScript with import and top-level await can also use require, and gets its arguments', async () => {
    const code =
      'import fs from "node:fs"\nconst one = await Promise.resolve(1)\n' +
      'console.log(one, typeof fs.statSync, typeof require("os").cpus, process.argv.slice(1))'
    assert.deepEqual(await run(code, { argv: ['a b'] }), { exitCode: 0, result: "1 function function [ 'a b' ]\n" })
  })

  test('`await` at the beginning of a JavaScript line is a top-level await, even before a parenthesis', async () => {
    assert.equal((await run('await (async () => console.log("in"))()\nconsole.log("out")')).result, 'in\nout\n')
    assert.equal((await run('const x = await (Promise.resolve(3))\nconsole.log(x)')).result, '3\n')
  })

  test('JavaScript runs as a script if `import` and `await` are only in its strings and functions', async () => {
    const code = 'undeclared = "import x; await y"; const f = async () => { await 1; return import("node:os") }\n'
    const { result } = await run(`${code}f().then((os) => console.log(undeclared.length, typeof os.cpus))`)
    assert.equal(result, '17 function\n')
  })

  test('if JavaScript code with `import` exits or throws, the answer has the code’s exit code and error', async () => {
    assert.equal((await run('import "node:fs"; process.exit(4)')).exitCode, 4)
    const { exitCode, result } = await run('import "node:fs"\n\nthrow new Error("here")')
    assert.equal(exitCode, 1)
    assert.match(result, /:3\n[\s\S]*Error: here/)
  })
})

suite('POST /process/code-run: the name of the code’s file, and other files that the code uses', () => {
  const make = async () => {
    const directory = mkdtempSync(join(process.env['HOME'] ?? '/', 'code-run-'))
    return { directory, [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }) }
  }
  const dirname =
    'console.log(__dirname === process.cwd(), __filename.startsWith(__dirname + "/code."), typeof require)'
  for (const [language, code] of [
    ['javascript', dirname],
    ['javascript', `import 'node:fs'\n${dirname}`],
    ['javascript', `const f = async () => await 1\n${dirname}`],
    ['typescript', dirname],
    ['typescript', `await 1\n${dirname}`],
  ] as const) {
    test(`code has require, and a __filename in the working directory: ${language}, ${code.slice(0, 16)}`, async () => {
      await using box = await startToolbox()
      const { body } = await box.post(codeRun, { code, language })
      assert.deepEqual(body, { exitCode: 0, result: 'true true function\n' })
    })
  }

  const roles =
    'if (isMainThread) new Worker(SELF, { workerData: 20 }).on("message", (n) => console.log("got", n))\n' +
    'else parentPort.postMessage(workerData + 1)'
  const required = 'const { Worker, isMainThread, parentPort, workerData } = require("worker_threads")\n'
  const imported = 'import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads"\n'
  for (const [language, head, self] of [
    ['javascript', required, '__filename'],
    ['javascript', imported, 'new URL(import.meta.url)'],
    ['javascript', `import { fileURLToPath } from "url"\n${imported}`, 'fileURLToPath(import.meta.url)'],
    ['javascript', imported, '__filename'],
    ['typescript', imported, '__filename'],
    ['typescript', `await 1\n${imported}`, 'new URL(import.meta.url)'],
  ] as const) {
    test(`code can start its own file as a worker: ${language}, ${self}`, async () => {
      await using box = await startToolbox()
      const { body } = await box.post(codeRun, { code: head + roles.replace('SELF', self), language })
      assert.deepEqual(body, { exitCode: 0, result: 'got 21\n' })
    })
  }

  test('JavaScript code can start workers from source text and from other files', async () => {
    using made = await make()
    writeFileSync(join(made.directory, 'w.js'), 'console.log("file")')
    await using box = await startToolbox()
    const code =
      `const { Worker } = require("worker_threads"); new Worker("console.log('text')", { eval: true }).on("exit", () =>\n` +
      `new Worker(${JSON.stringify(join(made.directory, 'w.js'))}))`
    assert.equal((await box.post(codeRun, { code, language: 'javascript' })).body.result, 'text\nfile\n')
  })

  test('TypeScript code can import TypeScript files with .ts, .js or no extension, which can import others', async () => {
    using made = await make()
    const put = (name: string, text: string) => {
      mkdirSync(dirnameOf(join(made.directory, name)), { recursive: true })
      writeFileSync(join(made.directory, name), text)
    }
    put(
      'a.ts',
      "import { deeper } from './deep/index'\nexport enum Kind { One = 1 }\nexport const a: number = deeper + Kind.One",
    )
    put('deep/index.ts', 'export const deeper: number = 1\nexport type Only = string')
    put('plain.js', 'exports.plain = 3')
    put('data.json', '{"data":4}')
    put('default.ts', 'export default class Five { constructor(private readonly n = 5) {} get() { return this.n } }')
    const at = `./${basename(made.directory)}`
    const run = async (code: string) => {
      await using box = await startToolbox()
      return (await box.post(codeRun, { code: code.replaceAll('AT', at), language: 'typescript' })).body
    }
    const imports =
      "import { a, Kind } from 'AT/a.ts'\nimport { a as again } from 'AT/a'\nimport * as js from 'AT/a.js'\n" +
      "import { plain } from 'AT/plain.js'\nimport Five from 'AT/default'\nimport { deeper, type Only } from 'AT/deep'\n"
    const shown =
      "const { data } = require('AT/data.json')\nconst s: Only = 'x'\n" +
      'console.log(a, Kind.One, again, js.a, plain, new Five().get(), deeper, data, s)'
    const wanted = { exitCode: 0, result: '2 1 2 2 3 5 1 4 x\n' }
    assert.deepEqual(await run(imports + shown), wanted)
    assert.deepEqual(await run(`${imports}await Promise.resolve()\n${shown}`), wanted)
    assert.deepEqual(await run("import('AT/a.ts').then(({ a }) => console.log(a))"), { exitCode: 0, result: '2\n' })
    assert.deepEqual(await run("const { a } = await import('AT/a')\nconsole.log(a)"), { exitCode: 0, result: '2\n' })
    const missing = await run("import './not-there.ts'")
    assert.equal(missing.exitCode, 1)
    assert.match(missing.result, /Cannot find module '\.\/not-there\.ts'/)
    put('wrong.ts', 'export const x: = 1')
    assert.match((await run("import 'AT/wrong.ts'")).result, /SyntaxError.*wrong\.ts/)
  })
})

suite('POST /process/code-run: standard input of javascript and typescript', () => {
  const listens = 'process.stdin.on("end", () => console.log("end")).resume()'
  const reads =
    'import { createInterface } from "node:readline/promises"\nimport { stdin as input } from "node:process"\n' +
    'for await (const line of createInterface({ input })) console.log(line)\nconsole.log("after")'
  for (const [language, code, result] of [
    ['javascript', listens, 'end\n'],
    ['javascript', reads, 'after\n'],
    ['javascript', `await 1\n${listens}`, 'end\n'],
    ['typescript', listens, 'end\n'],
    ['typescript', reads, 'after\n'],
  ] as const) {
    test(`standard input is empty for code that reads it: ${language}, ${code.slice(0, 20)}`, async () => {
      await using box = await startToolbox()
      assert.deepEqual((await box.post(codeRun, { code, language })).body, { exitCode: 0, result })
    })
  }
})

suite('POST /process/code-run: typescript', () => {
  const run = async (code: string, more: object = {}) => {
    await using box = await startToolbox()
    return (await box.post(codeRun, { code, language: 'typescript', ...more })).body
  }

  test('TypeScript with enums, namespaces, parameter properties and imports needs no compiler in the sandbox', async () => {
    const code = `
import { join } from 'node:path'
import type { Stats } from 'node:fs'
import * as os from 'os'
enum Color { Red = 1, Blue }
namespace Space { export const x: number = 3 }
class Point { constructor(private readonly a: number) {} get(): number { return this.a } }
interface Shape { stats?: Stats }
const shape: Shape = {}
const generic = <T,>(value: T): T => value
console.log(join('a', 'b'), typeof os.cpus, Color.Blue, Space.x, new Point(4).get(), shape, generic<number>(5))`
    assert.deepEqual(await run(code), { exitCode: 0, result: 'a/b function 2 3 4 {} 5\n' })
  })

  test('TypeScript code gets its arguments from process.argv[1] on, can use require, and is the main module', async () => {
    const code = 'console.log(process.argv.slice(1), typeof require("fs").statSync, require.main === module)'
    const { result } = await run(code, { argv: ['x y'] })
    assert.equal(result, "[ 'x y' ] function true\n")
  })

  test('an error in TypeScript code has the line number of the code that the caller sent', async () => {
    const { exitCode, result } = await run(
      'interface A { a: number }\n\nfunction boom(): never {\n  throw new Error("x")\n}\nboom()',
    )
    assert.equal(exitCode, 1)
    assert.match(result, /code\.ts:4/)
  })

  test('TypeScript code sets its own exit code', async () => {
    assert.equal((await run('const n: number = 9; process.exit(n)')).exitCode, 9)
  })

  test('TypeScript code with a syntax error is not run, and the answer has the line number of the error', async () => {
    const { exitCode, result } = await run('console.log("ran")\nconst x: = 3')
    assert.equal(exitCode, 1)
    assert.match(result, /Unexpected "="[\s\S]*code\.ts:2:9/)
    assert.doesNotMatch(result, /^ran/m)
  })

  test('TypeScript code can use top-level await together with imports, types and require', async () => {
    const code =
      'import { join } from "node:path"\nconst n: number = await Promise.resolve(1)\n' +
      'console.log(n, join("a", "b"), typeof require("os").cpus)'
    assert.deepEqual(await run(code), { exitCode: 0, result: '1 a/b function\n' })
    const failed = await run(
      'interface A { a: number }\nawait 1\nfunction boom(): never {\n  throw new Error("x")\n}\nboom()',
    )
    assert.match(failed.result, /code\.ts:4/)
  })

  test('TypeScript code made to exhaust the compiler is refused, and the next call is answered', async () => {
    const { exitCode, result } = await run('('.repeat(1_000_000))
    assert.equal(exitCode, 1)
    assert.match(result, /gave up/)
    assert.equal((await run('console.log(1)')).result, '1\n')
  })

  test('POST /process/code-run answers 413 for TypeScript code above 1 MiB', async () => {
    await using box = await startToolbox()
    const code = `console.log(1) /* ${'x'.repeat(1024 * 1024)} */`
    const { status, body } = await box.post('/process/code-run', { code, language: 'typescript' })
    assert.deepEqual([status, body.message], [413, 'TypeScript code must not be larger than 1 MiB.'])
    assert.equal((await box.post('/process/code-run', { code, language: 'javascript' })).body.result, '1\n')
  })

  test('the TypeScript compiler does not run as root', { skip: needsRoot }, async () => {
    const { transpile } = await import('./typescript.ts')
    const { compile } = await import('#src/runner/gate-link/compiler.ts')
    const compiler = { compile, typeRemover: async () => '' }
    const deadline = { signal: new AbortController().signal, [Symbol.dispose]: () => undefined }
    const seen = new Set<string>()
    const look = setInterval(() => {
      try {
        for (const line of execFileSync('ps', ['-eo', 'uid,ppid,comm,args'], { encoding: 'utf8' }).split('\n')) {
          if (line.includes(` ${process.pid} `) && line.includes(' esbuild ')) seen.add(line.trim().split(/\s+/)[0]!)
        }
      } catch {}
    }, 1)
    try {
      await until(async () => {
        await transpile(compiler, 'org-1', `const x = [${'1,'.repeat(300_000)}]`, deadline)
        return seen.size > 0
      }, 'the compiler at work')
    } finally {
      clearInterval(look)
    }
    assert.deepEqual([...seen], ['61006'])
  })
})
