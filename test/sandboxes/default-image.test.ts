// Runs the first commands of most guides in a sandbox of the default image, as the default user. These sandboxes have no network.
// What a guide would download is made in the sandbox: packages for npm and pip, and a git server that SSH reaches on loopback.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { type Box, createBox } from './box.ts'
import { type Platform, platform } from './harness.ts'

const write = (path: string, text: string) => `cat > ${path} <<'END'\n${text}\nEND`

const inside = {
  npm: [
    'mkdir -p ~/made/greet && cd ~/made/greet',
    write('package.json', '{ "name": "greet", "version": "1.0.0", "bin": "greet.js" }'),
    write('greet.js', '#!/usr/bin/env node\nconsole.log("hello", process.argv[2])'),
    'npm pack --silent',
  ],
  addon: [
    'mkdir -p ~/made/addon && cd ~/made/addon',
    write('package.json', '{ "name": "addon", "version": "1.0.0", "scripts": { "build": "node-gyp rebuild" } }'),
    write('binding.gyp', '{ "targets": [{ "target_name": "addon", "sources": ["addon.c"] }] }'),
    write(
      'addon.c',
      [
        '#include <node_api.h>',
        'static napi_value init(napi_env env, napi_value exports) {',
        '  napi_value answer;',
        '  napi_create_int32(env, 42, &answer);',
        '  napi_set_named_property(env, exports, "answer", answer);',
        '  return exports;',
        '}',
        'NAPI_MODULE(addon, init)',
      ].join('\n'),
    ),
  ],
  pip: [
    'mkdir -p ~/made/answer && cd ~/made/answer',
    write(
      'answer.c',
      [
        '#include <Python.h>',
        'static PyObject *get(PyObject *self, PyObject *none) { return PyLong_FromLong(42); }',
        'static PyMethodDef methods[] = { { "get", get, METH_NOARGS, 0 }, { 0 } };',
        'static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, "answer", 0, -1, methods };',
        'PyMODINIT_FUNC PyInit_answer(void) { return PyModule_Create(&module); }',
      ].join('\n'),
    ),
    write(
      'setup.py',
      'from setuptools import setup, Extension\nsetup(name="answer", version="1.0", ext_modules=[Extension("answer", ["answer.c"])])',
    ),
    'python setup.py --quiet sdist',
  ],
  git: [
    'git config --global user.email me@example.com && git config --global user.name me',
    'git config --global init.defaultBranch main',
    'git init -q ~/made/repo && cd ~/made/repo && echo text > file && git add file && git commit -qm first',
  ],
  deb: [
    'mkdir -p ~/made/tool/root/DEBIAN ~/made/tool/root/usr/bin && cd ~/made/tool',
    write(
      'root/DEBIAN/control',
      'Package: own-tool\nVersion: 1\nArchitecture: all\nMaintainer: me <me@example.com>\nDescription: a tool of the test',
    ),
    write('root/usr/bin/own-tool', '#!/bin/sh\necho from a package'),
    'chmod 755 root/usr/bin/own-tool && dpkg-deb --root-owner-group --build root tool.deb > /dev/null',
  ],
  files: [
    'mkdir -p ~/work && cd ~/work',
    write('hello.ts', 'const text: string = "typed"\nconsole.log(text)'),
    write('hello.c', '#include <stdio.h>\nint main(void) { puts("from C"); return 0; }'),
    write('hello.cpp', '#include <iostream>\nint main() { std::cout << "from C++\\n"; }'),
    write('Makefile', 'hello: hello.c\n\tgcc -o $@ $<'),
    write('data.json', '{ "a": [1, 2, 3] }'),
    write(
      'plot.py',
      'import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.savefig("plot.png")\nimport os\nprint(os.path.getsize("plot.png") > 1000)',
    ),
  ],
}

/** Each command with a pattern that its output must match. All commands run in one sandbox, in this order. */
const commands: readonly (readonly [command: string, answer: RegExp])[] = [
  ['whoami', /^daytona$/],
  ['pwd', /^\/home\/daytona$/],
  ['node --version', new RegExp(`^${process.version}$`)],
  ['npm --version', /^\d+\.\d+\.\d+$/],
  ['npm config get prefix', /^\/home\/daytona\/\.local$/],
  ['npm install -g ~/made/greet/greet-1.0.0.tgz', /added 1 package/],
  ['greet you', /^hello you$/],
  ["bash -lc 'greet you'", /^hello you$/],
  ['npm ls -g', /greet@1\.0\.0/],
  ['npm uninstall -g greet', /removed 1 package/],
  ['npx --yes --package ~/made/greet/greet-1.0.0.tgz greet there', /^hello there$/m],
  ['cd ~/work && npm init -y && npm install ~/made/greet/greet-1.0.0.tgz && npx greet here', /hello here$/],
  ['corepack --version', /^\d+\.\d+\.\d+$/],
  ['corepack enable && command -v pnpm yarn', /^\/\S+pnpm\n\/\S+yarn$/],
  ['node -e "console.log(6 * 7)"', /^42$/],
  ['cd ~/work && tsx hello.ts', /^typed$/],
  ['cd ~/made/addon && npm run build 2>&1 && node -p "require(\'./build/Release/addon.node\').answer"', /^42$/m],
  ['python --version', /^Python 3\.\d+/],
  ['python3 -c "print(6 * 7)"', /^42$/],
  ['python -c \'import pandas; print(pandas.DataFrame({"a": [1, 2]}).a.sum())\'', /^3$/],
  ["python -c 'import numpy; print(numpy.arange(4).sum())'", /^6$/],
  ['cd ~/work && python plot.py', /^True$/],
  ['pip --version', /python 3\./],
  ['pip install --no-build-isolation --no-index ~/made/answer/dist/answer-1.0.tar.gz', /Successfully installed answer/],
  ["cd ~ && python -c 'import answer; print(answer.get())'", /^42$/],
  ['pip list', /answer +1\.0/],
  ['pip uninstall -y answer', /Successfully uninstalled answer/],
  ['python -m venv ~/venv && ~/venv/bin/python -m pip --version', /\/venv\//],
  ['git --version', /^git version 2/],
  ['git lfs version', /^git-lfs\/3/],
  ['cd ~/made/repo && git lfs track "*.bin" && git log --oneline', /first$/],
  ['git clone -q ~/made/repo ~/cloned && cat ~/cloned/file', /^text$/],
  ['git clone -q ssh://git-here/home/daytona/made/repo ~/by-ssh && cat ~/by-ssh/file', /^text$/],
  ['ssh -V 2>&1', /^OpenSSH_/],
  ['ssh git-here echo over ssh', /^over ssh$/],
  ["ssh-keygen -q -t ed25519 -N '' -f ~/other-key && ls ~/other-key.pub", /other-key\.pub$/],
  ['curl --version', /https/],
  ['curl -s file:///etc/hostname', /./],
  ['wget --version', /GNU Wget/],
  ['cd ~/work && jq -c .a data.json', /^\[1,2,3\]$/],
  ['cd ~/work && rg -c typed hello.ts', /^1$/],
  ['file /usr/local/bin/node', /ELF 64-bit/],
  ['cd ~/work && zip -q all.zip hello.ts data.json && unzip -l all.zip', /2 files/],
  [
    'cd ~/work && tar -czf all.tgz hello.ts && tar -cJf all.txz hello.ts && tar -cjf all.tbz hello.ts && ls all.t*',
    /all\.tbz/,
  ],
  ['rsync -a ~/work/ ~/copied/ && ls ~/copied/hello.ts', /hello\.ts$/],
  ['less --version', /^less \d/],
  ['vi --version | head -1', /VIM - Vi IMproved/],
  ['make --version', /^GNU Make/],
  ['cd ~/work && make hello && ./hello', /from C$/],
  ['cd ~/work && g++ -o plus hello.cpp && ./plus', /^from C\+\+$/],
  ["zsh -c 'echo $ZSH_VERSION'", /^5\./],
  ['locale -a', /C\.utf8\n(.*\n)*en_US\.utf8/],
  ['LC_ALL=en_US.UTF-8 bash -c "echo ok" 2>&1', /^ok$/],
  ['echo $LANG', /^C\.UTF-8$/],
  ['TZ=America/New_York date -d @0 +%H:%M', /^19:00$/],
  ['python -c \'import zoneinfo; print(zoneinfo.ZoneInfo("Asia/Tokyo"))\'', /^Asia\/Tokyo$/],
  ['ps aux | head -1', /^USER/],
  ['test -w ~ && touch ~/.local/bin/mine && echo can write', /^can write$/],
  ['echo "$PATH"', /^\/home\/daytona\/\.local\/bin:/],
  // `~/.local/bin` is in PATH exactly once. If the caller has set PATH, the caller's entries come first.
  ...['sh -lc', 'bash -lc', 'zsh -lc'].flatMap((shell): [string, RegExp][] => [
    [`${shell} 'echo "$PATH" | tr : "\\n" | grep -c /.local/bin'`, /^1$/],
    [`PATH=/opt/venv/bin:/usr/bin:/bin ${shell} 'echo "$PATH"'`, /^\/opt\/venv\/bin:\/usr\/bin:\/bin(:|$)/],
  ]),
  ['openssl version', /^OpenSSL 3/],
  ['sudo -n true && echo may', /^may$/],
  ['sudo -n whoami', /^root$/],
  ['sudo -u daytona whoami', /^daytona$/],
  ['sudo -n apt-get --version', /^apt \d/],
  ['sudo apt-get install -y ~/made/tool/tool.deb 2>&1 && own-tool', /^from a package$/m],
  ['sudo npm install -g ~/made/greet/greet-1.0.0.tgz && ls /usr/local/bin/greet', /^\/usr\/local\/bin\/greet$/m],
]

suite('the default image, used by the default user', () => {
  let alcove: Platform
  let box: Box

  before(async () => {
    alcove = await platform()
    box = await createBox(alcove)
    for (const lines of Object.values(inside)) await box.run(lines.join('\n'))
    await serveSsh(alcove, box)
  })
  after(async () => {
    await box?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  })

  test('the tests of this file run at least 60 commands in the default image', () =>
    assert.ok(commands.length >= 60, String(commands.length)))

  for (const [command, answer] of commands)
    test(`a command prints what is expected in the default image: ${command.slice(0, 85)}`, async () =>
      assert.match(await box.run(command), answer))

  test('`uv venv` makes a Python environment in the default image; this test is skipped if uv is missing', async (context) => {
    if ((await box.try('command -v uv')).exitCode !== 0) return context.skip('the image has no uv')
    await box.run('uv --version && uv venv ~/by-uv && ~/by-uv/bin/python -c "print(1)"')
  })
})

const dropbear = '/usr/sbin/dropbear'

/**
 * Starts an SSH server as the sandbox's user. The server program is copied from this machine, because the image has only an SSH
 * client.
 */
const serveSsh = async (alcove: Platform, box: Box) => {
  const libraries = [...execFileSync('ldd', [dropbear], { encoding: 'utf8' }).matchAll(/(\/\S+) \(0x/g)]
  const files = [dropbear, '/usr/bin/dropbearkey', ...libraries.map((match) => match[1] as string)]
  await box.run('mkdir -p -m 700 ~/sshd ~/.ssh')
  for (const path of files) {
    const to = `/home/daytona/sshd/${basename(path)}`
    const reply = await fetch(`${box.record['toolboxProxyUrl']}/${box.id}/files/upload-v2?path=${to}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${alcove.key}`, 'content-type': 'application/octet-stream' },
      body: readFileSync(path),
    })
    assert.equal(reply.status, 200, await reply.text())
  }
  await box.run(
    [
      'set -e; cd ~/sshd && chmod +x * && export LD_LIBRARY_PATH=$PWD',
      "ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/id_ed25519 && cp ~/.ssh/id_ed25519.pub ~/.ssh/authorized_keys",
      './dropbearkey -t ed25519 -f host > /dev/null',
      write(
        '~/.ssh/config',
        'Host git-here\n  HostName 127.0.0.1\n  Port 2222\n  StrictHostKeyChecking accept-new\n  LogLevel ERROR',
      ),
      // The command ends when the SSH server dropbear can accept connections, because dropbear then goes into the background.
      './dropbear -E -r $PWD/host -p 127.0.0.1:2222 -P $PWD/pid > log 2>&1',
    ].join('\n'),
  )
}
