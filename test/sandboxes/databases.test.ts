// After each verb that stops a sandbox or copies its disk, databases in the sandbox must start again and have all committed rows.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { type Box, boxOf, createBox, until } from './box.ts'
import { type Platform, platform } from './harness.ts'

const install = `export DEBIAN_FRONTEND=noninteractive
apt-get update -q && apt-get install -yq --no-install-recommends postgresql redis-server mariadb-server
runuser -u postgres -- sh -c 'pg_ctlcluster $(ls /usr/lib/postgresql) main start'
runuser -u postgres -- psql -c 'create table rows (n int)'
mkdir -p /run/mysqld && chown mysql /run/mysqld && (mariadbd --user=mysql >/dev/null 2>&1 &)
until mariadb-admin ping >/dev/null 2>&1; do sleep 0.2; done
mariadb -e 'create database d; create table d.rows (n int)'
redis-server --appendonly yes --appendfsync always --dir /var/lib/redis --daemonize yes
python3 -c 'import sqlite3; sqlite3.connect("/root/d").execute("create table rows (n int)")'`

const start = `runuser -u postgres -- sh -c 'pg_ctlcluster $(ls /usr/lib/postgresql) main start'
mkdir -p /run/mysqld && chown mysql /run/mysqld && (mariadbd --user=mysql >/dev/null 2>&1 &)
redis-server --appendonly yes --appendfsync always --dir /var/lib/redis --daemonize yes
until mariadb-admin ping >/dev/null 2>&1; do sleep 0.2; done
until runuser -u postgres -- psql -c 'select 1' >/dev/null 2>&1; do sleep 0.2; done
until [ "$(redis-cli ping)" = PONG ]; do sleep 0.2; done`

/** A command that commits a row in each database. It returns when each database has confirmed the commit. */
const commit = (n: number) => `set -e; cd /
runuser -u postgres -- psql -qc 'insert into rows values (${n})'
mariadb -e 'insert into d.rows values (${n})'
redis-cli rpush rows ${n} >/dev/null
python3 -c 'import sqlite3; c = sqlite3.connect("/root/d"); c.execute("insert into rows values (${n})"); c.commit()'`

const read = `cd /
runuser -u postgres -- psql -Atc 'select n from rows order by n' | xargs
mariadb -Ne 'select n from d.rows order by n' | xargs
redis-cli lrange rows 0 -1 | xargs
python3 -c 'import sqlite3; print(*[n for n, in sqlite3.connect("/root/d").execute("select n from rows order by n")])'`

suite('PostgreSQL, MariaDB, Redis and SQLite in a sandbox', () => {
  let alcove: Platform
  let box: Box
  let committed = 0
  before(async () => {
    alcove = await platform()
    box = await createBox(alcove, { user: 'root', cpu: 2, memory: 2, disk: 5 })
    await box.run(`{ ${install}; } >/tmp/installed 2>&1 || { tail -20 /tmp/installed; exit 1; }`, { timeout: 300 })
  })
  after(async () => {
    await box?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  })

  const commitOne = async (where = box) => {
    committed += 1
    await where.run(commit(committed), { timeout: 60 })
  }
  const becomes = (where: Box, state: string) =>
    until(`it is ${state}`, async () => (await alcove.api('GET', `/sandbox/${where.id}`)).body['state'] === state, 120)
  const ask = async (where: Box, path: string, body?: object) => {
    const { status, body: answer } = await alcove.api('POST', `/sandbox/${where.id}/${path}`, body)
    assert.ok(status < 300, `${path}: ${status} ${JSON.stringify(answer)}`)
    return answer as Record<string, unknown>
  }
  const holdsAll = async (where = box) => {
    await where.run(`{ ${start}; } >/tmp/started 2>&1`, { timeout: 120 })
    const all = Array.from({ length: committed }, (_, n) => n + 1).join(' ')
    assert.deepEqual((await where.run(read, { timeout: 60 })).split('\n'), [all, all, all, all])
  }

  test('databases in a sandbox have all committed rows after the sandbox is stopped and started', async () => {
    await commitOne()
    await ask(box, 'stop')
    await becomes(box, 'stopped')
    await ask(box, 'start')
    await becomes(box, 'started')
    await holdsAll()
  })

  test('databases in a sandbox have all committed rows after the sandbox is stopped by force and started', async () => {
    await commitOne()
    await ask(box, 'stop?force=true')
    await becomes(box, 'stopped')
    await ask(box, 'start')
    await becomes(box, 'started')
    await holdsAll()
  })

  test('a fork of a sandbox in which databases run has the committed rows of these databases', async () => {
    await commitOne()
    await using fork = boxOf(alcove, await ask(box, 'fork', {}))
    await becomes(fork, 'started')
    await holdsAll(fork)
  })

  test('a sandbox made from a snapshot has the committed rows of the databases in the snapshot', async () => {
    await commitOne()
    const name = `databases-${process.pid}`
    await ask(box, 'snapshot', { name })
    await until(
      'the snapshot is active',
      async () => (await alcove.api('GET', `/snapshots/${name}`)).body['state'] === 'active',
      120,
    )
    await using copy = await createBox(alcove, { snapshot: name, user: 'root' })
    await holdsAll(copy)
    await alcove.api('DELETE', `/snapshots/${name}`)
  })

  test('databases in a sandbox have all committed rows after the sandbox is archived and started', async () => {
    await commitOne()
    await ask(box, 'stop')
    await becomes(box, 'stopped')
    await ask(box, 'archive')
    await becomes(box, 'archived')
    await ask(box, 'start')
    await becomes(box, 'started')
    await holdsAll()
  })
})
