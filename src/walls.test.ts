// Checks which parts of the code import which other parts. The error of a failed test names the two files.
import assert from 'node:assert/strict'
import { existsSync, globSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { suite, test } from 'node:test'
import {
  imports,
  isBelow,
  isTest,
  programs,
  root,
  say,
  specifiersOf,
  tables,
  tablesWrittenBy,
  textOf,
} from './testing/house.ts'
import { rooms, writers } from './testing/rooms.ts'

/**
 * Folders and files that every part of the code may import: messages between programs, errors, and helpers that know
 * nothing of Alcove.
 */
const ground = ['src/wire', 'src/problems.ts', 'src/kit']

/** For each part of the code, which other parts it may import. A part that is not listed may import nothing. */
const reaches: Record<string, readonly string[]> = {
  bin: ['src/cli', 'src/up', 'src/control', 'src/gate', 'src/runner', 'src/ssh-gateway', ...ground],
  'src/cli': ['client/src', 'src/up', 'src/doctor', 'src/runner', ...ground],
  // The npm package `@alcove/client` is published without the server, so it may import no code of the server.
  'client/src': [],
  'src/up': ['src/doctor', 'src/postgres', ...ground],
  'src/doctor': ground,
  'src/control': ['src/http', 'src/postgres/url.ts', ...ground],
  'src/egress': ground,
  'src/gate': ['src/toolbox', 'src/http', ...ground],
  'src/ssh-gateway': ground,
  // The runner may import the client for agents in sandboxes, but no code that interprets a caller's bytes.
  'src/runner': ['src/toolbox/agent', ...ground],
  'src/toolbox': ['src/http', ...ground],
  'src/postgres': ground,
  'src/http': ground,
  'src/kit': [],
  'src/problems.ts': [],
  'src/wire': [],
}

const partOf = (file: string) => (file.startsWith('bin/') ? 'bin' : file.split('/').slice(0, 2).join('/'))

/** Returns the room (testing/rooms.ts) to which a file belongs. Undefined for programs without rooms. */
const roomOf = (file: string): string | undefined => {
  const program = partOf(file)
  const path = file.slice(program.length + 1)
  return rooms[program]?.find((room) => isBelow(path, room))
}

suite('what each part of the code may import, and which database tables it may write', () => {
  test('each import in the code names an existing file', () => {
    assert.ok(imports.length > 100)
    assert.deepEqual(imports.filter(({ target }) => !existsSync(join(root, target))).map(say), [])
  })

  test('each part of the code is in the table of allowed imports', () => {
    assert.deepEqual(
      [...new Set(programs.map(partOf))].filter((part) => reaches[part] === undefined),
      [],
    )
  })

  test('bin imports programs, programs import http, http imports kit, never the reverse; all import wire', () => {
    const through = imports.filter(({ file, target }) => {
      const part = partOf(file)
      const allowed = [part, ...(reaches[part] ?? [])]
      return !target.endsWith('.json') && !allowed.some((place) => isBelow(target, place))
    })
    assert.deepEqual(through.map(say), [])
  })

  test('no program imports a test, or a file that only tests use', () => {
    const through = imports.filter(({ target }) => isTest(target) || target.startsWith('test/'))
    assert.deepEqual(through.map(say), [])
  })

  test('each file that only tests use is in a folder for tests, such as `testing`', () => {
    const imported = new Set(imports.map(({ target }) => target))
    assert.deepEqual(
      programs.filter((file) => isBelow(file, 'src') && !imported.has(file)),
      // No file imports these files, because each file is a program of its own, which the runner or `up` starts.
      ['src/egress/process.ts', 'src/runner/network/dns/process.ts', 'src/up/dashboard/process.ts'],
    )
  })

  test('the runner imports nothing of the toolbox except the client for agents', () => {
    const named = programs
      .filter((file) => isBelow(file, 'src/runner') || file === 'bin/runner.ts')
      .flatMap((file) =>
        [...textOf(file).matchAll(/^import (type )?\{([^}]*)\} from '#src\/toolbox\/([^']+)'/gm)].flatMap(
          ([, type, names = '', from]) =>
            names
              .split(',')
              .map((name) => name.trim())
              .filter((name) => type === undefined && name !== '' && !name.startsWith('type '))
              .map((name) => `${file}: ${name.split(' as ')[0]} of ${from}`),
        ),
      )
    assert.deepEqual(named.sort(), [
      'src/runner/building/mounts.ts: AgentRefused of agent/agent.ts',
      'src/runner/building/perform.ts: AgentRefused of agent/agent.ts',
      'src/runner/building/run-step.ts: StartFailed of agent/agent.ts',
      'src/runner/copying/archives.ts: unpackRecord of agent/agent.ts',
      'src/runner/copying/copier.ts: AgentRefused of agent/agent.ts',
      'src/runner/copying/copier.ts: unpackRecord of agent/agent.ts',
      'src/runner/copying/sandbox-source.ts: AgentRefused of agent/agent.ts',
      // The client from `agentAt` can do everything, but the types in machine/machine.ts and building/workplace.ts hide its
      // sessions, terminals and tunnels from the rest of the runner.
      'src/runner/main.ts: agentAt of agent/agent.ts',
      'src/runner/verbs/entrypoint.ts: startEntrypoint of agent/entrypoint.ts',
      'src/runner/verbs/trust.ts: AgentRefused of agent/agent.ts',
    ])
    const loaded = new Set(['bin/runner.ts'])
    for (const file of loaded) {
      for (const { file: from, target } of imports) if (from === file) loaded.add(target)
    }
    assert.ok(loaded.has('src/runner/main.ts'))
    const ofCallers = [...loaded].filter(
      (file) =>
        ['src/http', 'src/gate', 'src/control'].some((place) => isBelow(file, place)) ||
        (isBelow(file, 'src/toolbox') && !isBelow(file, 'src/toolbox/agent')),
    )
    assert.deepEqual(ofCallers, [])
  })

  test('each source file of a program that is split into rooms is in a room, and each listed room has files', () => {
    const inRooms = programs.filter((file) => rooms[partOf(file)] !== undefined)
    assert.deepEqual(
      inRooms.filter((file) => roomOf(file) === undefined),
      [],
    )
    const named = Object.entries(rooms).flatMap(([program, list]) => list.map((room) => `${program}/${room}`))
    assert.deepEqual(
      named.filter((room) => !inRooms.some((file) => isBelow(file, room))),
      [],
    )
  })

  test('a room of a program imports only rooms that are listed before it', () => {
    const up = imports.filter(({ file, target }) => {
      const program = partOf(file)
      const list = rooms[program]
      if (list === undefined || partOf(target) !== program) return false
      return list.indexOf(roomOf(target)!) > list.indexOf(roomOf(file)!)
    })
    assert.deepEqual(up.map(say), [])
  })

  test('no folder of control imports the file `store.ts` of another folder', () => {
    const folderOf = (file: string) => /^src\/control\/([^/]+)\//.exec(file)?.[1]
    const through = imports.filter(({ file, target }) => {
      const [here, there] = [folderOf(file), folderOf(target)]
      return here !== undefined && target.endsWith('/store.ts') && here !== there
    })
    assert.deepEqual(through.map(say), [])
  })

  test('each TypeScript file that a README in src names exists', () => {
    const missing = globSync('src/**/README.md', { cwd: root }).flatMap((readme) => {
      const from = [dirname(readme), partOf(readme), 'src', '.']
      return [...textOf(readme).matchAll(/`((?:[\w.-]+\/)+[\w-]+\.ts)`/g)]
        .map(([, path]) => path!)
        .filter((path) => !from.some((place) => existsSync(join(root, place, path))))
        .map((path) => `${readme} names ${path}`)
    })
    assert.deepEqual(missing, [])
  })

  test('each database table is written only by the folder of control that `writers` in rooms.ts names', () => {
    const known = tables()
    const writing = programs
      .filter((file) => isBelow(file, 'src/control'))
      .flatMap((file) => tablesWrittenBy(file, known).map((table) => ({ file, table })))
    assert.ok(writing.length > known.size)
    assert.deepEqual([...known].sort(), Object.keys(writers).sort())
    assert.deepEqual(
      writing.filter(({ table }) => table === '${').map(({ file }) => file),
      // `table` is `${` where a variable in the SQL names the table. Only `history.ts` may do that; its callers pass the table's
      // name.
      ['src/control/storage/history.ts'],
    )
    const foreign = writing.filter(({ file, table }) => table !== '${' && writers[table] !== roomOf(file))
    assert.deepEqual(
      foreign.map(({ file, table }) => `${file} writes ${table}`),
      [],
    )
  })

  test('only src/control/snapshots/write.ts writes the state of a snapshot', () => {
    const isWriting =
      /\b(?:insert\s+into|delete\s+from)\s+snapshots\b|\bupdate\s+snapshots\s+set\b(?:(?!\bwhere\b)[^`])*\bstate\s*=/i
    assert.deepEqual(
      programs.filter((file) => isWriting.test(textOf(file))),
      ['src/control/snapshots/write.ts'],
    )
  })

  test('in the gate, only door.ts looks up sandboxes, because only door.ts checks tickets', () => {
    const finding = programs.filter((file) => /\bsandboxes\.find\(/i.test(textOf(file)) && isBelow(file, 'src/gate'))
    assert.deepEqual(finding, ['src/gate/door.ts'])
  })

  test('only src/control/storage and src/postgres import the PostgreSQL driver', () => {
    const knowing = programs.filter((file) => specifiersOf(file).includes('postgres'))
    assert.deepEqual(
      knowing.filter((file) => !isBelow(file, 'src/postgres') && !isBelow(file, 'src/control/storage')),
      [],
    )
  })

  test('only src/kit/telemetry imports OpenTelemetry, and other code uses it only through open.ts', () => {
    const isOpenTelemetry = (specifier: string) => specifier.startsWith('@opentelemetry/')
    const knowing = programs.filter((file) => specifiersOf(file).some(isOpenTelemetry))
    assert.ok(knowing.length > 0)
    assert.deepEqual(
      knowing.filter((file) => !isBelow(file, 'src/kit/telemetry')),
      [],
    )
    const loading = imports.filter(({ file, target }) => knowing.includes(target) && !knowing.includes(file))
    assert.deepEqual(loading.map(say), ['src/kit/telemetry/open.ts → src/kit/telemetry/sdk.ts'])
  })

  test('only the files that read a program’s settings read environment variables', () => {
    const reading = programs.filter((file) => /\bprocess\s*\.\s*env\b/.test(textOf(file)))
    const allowed = [
      'src/kit/log.ts', // the level of every program's log
      'src/cli/command-line.ts', // passes the environment to the settings of `up`
      'client/src/main.ts', // passes the environment to the commands
      'src/up/system-packages.ts', // passes the environment to the package manager
    ]
    assert.deepEqual(
      reading.filter((file) => !file.startsWith('bin/') && !file.endsWith('/config.ts') && !allowed.includes(file)),
      [],
    )
  })
})
