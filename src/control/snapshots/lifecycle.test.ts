import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { type Database, openDatabase, type Sql, type Transaction } from '#src/control/storage/database.ts'
import { organizations } from '#test/control/people.ts'
import { openTestDatabase } from '#test/control/test-database.ts'
import {
  firstStateOn,
  type MovingEvent,
  type SnapshotState,
  snapshotEvents,
  snapshotMoves,
  snapshotStates,
  statesInMaking,
} from './lifecycle.ts'
import { ensureBuiltIn, insertSnapshot, moveSnapshots, removeSnapshot } from './write.ts'

type Event = MovingEvent | 'delete'
type Ending = SnapshotState | 'stays' | 'gone'

/**
 * The expected result of every event in every state, written out by hand. The order of the states is that of
 * `snapshotStates`.
 */
const expected: Record<Event, Ending[]> = {
  // Columns: the state before the event. In order: building, pending, pulling, snapshotting, active, inactive, error,
  // build_failed, removing.
  progress: ['building', 'pulling', 'pulling', 'snapshotting', 'stays', 'stays', 'stays', 'stays', 'stays'],
  arrive: ['active', 'active', 'active', 'active', 'stays', 'stays', 'stays', 'stays', 'stays'],
  find: ['stays', 'active', 'active', 'stays', 'stays', 'stays', 'stays', 'stays', 'stays'],
  refuse: ['error', 'error', 'error', 'error', 'stays', 'stays', 'stays', 'stays', 'stays'],
  fail: ['build_failed', 'error', 'error', 'error', 'error', 'stays', 'stays', 'stays', 'stays'],
  'give-up': ['build_failed', 'error', 'error', 'error', 'stays', 'stays', 'stays', 'stays', 'stays'],
  lose: ['stays', 'stays', 'stays', 'stays', 'pulling', 'stays', 'stays', 'stays', 'stays'],
  'lose-runner': ['stays', 'error', 'error', 'error', 'error', 'error', 'error', 'stays', 'stays'],
  deactivate: ['stays', 'stays', 'stays', 'stays', 'inactive', 'stays', 'stays', 'stays', 'stays'],
  idle: ['stays', 'stays', 'stays', 'stays', 'inactive', 'stays', 'stays', 'stays', 'stays'],
  activate: ['stays', 'stays', 'stays', 'stays', 'stays', 'active', 'active', 'stays', 'stays'],
  'bring-again': ['stays', 'stays', 'stays', 'stays', 'stays', 'pending', 'pending', 'stays', 'stays'],
  delete: ['gone', 'gone', 'gone', 'gone', 'gone', 'gone', 'gone', 'gone', 'gone'],
}
const events = Object.keys(expected) as Event[]

const endingOf = (on: Event, state: SnapshotState): Ending => expected[on][snapshotStates.indexOf(state)]!

const before = new Date('2026-01-01T00:00:00Z')
const now = new Date('2026-01-02T00:00:00Z')

/** Inserts one snapshot for each group and state. The column `image` contains the name of the group. */
const addSnapshots = async (sql: Sql, groups: readonly string[]): Promise<void> => {
  const rows = groups.flatMap((group) =>
    snapshotStates.map((state) => ({
      organization_id: organizations.ours,
      name: `${group} ${state}`,
      state,
      image: group,
      cpu: 1,
      memory_gib: 1,
      disk_gib: 3,
      updated_at: before,
    })),
  )
  await sql`insert into snapshots ${sql(rows)}`
}

/** Applies an event to all snapshots whose image is `group`. Returns the number of snapshots whose state changed. */
const happen = async (transaction: Transaction, on: Event, group: string): Promise<number> => {
  if (on !== 'delete') {
    const change = { now, ...(failures.includes(on) ? { reason: 'Why.' } : {}) }
    return (await moveSnapshots(transaction, on, transaction`image = ${group}`, change)).length
  }
  const rows = await transaction<{ id: string }[]>`select id from snapshots where image = ${group}`
  for (const { id } of rows) await removeSnapshot(transaction, id)
  return rows.length
}

const failures: readonly Event[] = ['refuse', 'fail', 'give-up', 'lose-runner']

type Found = { state: SnapshotState; updatedAt: Date; reason: string | null }

const find = async (sql: Sql, group: string): Promise<Map<string, Found>> => {
  const rows = await sql<(Found & { name: string })[]>`
    select name, state, updated_at as "updatedAt", error_reason as reason from snapshots where image = ${group}`
  return new Map(rows.map(({ name, ...found }) => [name, found]))
}

suite('the states of a snapshot', () => {
  test('each event of a snapshot leads from each state to the expected state, or changes nothing', async () => {
    await using opened = await openTestDatabase()
    const { database } = opened
    await addSnapshots(database.sql, events)
    for (const on of events) {
      const moved = await database.transaction((transaction) => happen(transaction, on, on))
      const found = await find(database.sql, on)
      const endings = snapshotStates.map((state): Ending => {
        const row = found.get(`${on} ${state}`)
        return row === undefined ? 'gone' : row.updatedAt.getTime() === before.getTime() ? 'stays' : row.state
      })
      assert.deepEqual(endings, expected[on], on)
      assert.equal(moved, endings.filter((ending) => ending !== 'stays').length, on)
      for (const [name, row] of found) {
        const [state] = name.split(' ').slice(-1)
        if (row.updatedAt.getTime() === before.getTime()) assert.equal(row.state, state, name)
        const isFailed = failures.includes(on) && row.updatedAt.getTime() === now.getTime()
        assert.equal(row.reason, isFailed ? 'Why.' : null, name)
      }
    }
  })

  test('the source of a new snapshot decides its first state; a built-in snapshot is `active` immediately', async () => {
    await using opened = await openTestDatabase()
    const { database } = opened
    const size = { cpu: 1, memoryGiB: 1, diskGiB: 3 }
    const made = { organizationId: organizations.ours, imageName: null, osUser: 'root', entrypoint: null, ...size }
    const firsts = { build: 'building', bring: 'pending', copy: 'snapshotting' } as const
    await database.transaction(async (transaction) => {
      for (const on of ['build', 'bring', 'copy'] as const) {
        const { state } = await insertSnapshot(transaction, on, { ...made, name: on, image: on }, now)
        assert.equal(state, firsts[on])
      }
      await ensureBuiltIn(transaction, 'built-in')
      const [row] = await transaction`select state, general from snapshots where name = 'built-in'`
      assert.deepEqual({ ...row }, { state: 'active', general: true })
    })
    assert.throws(() => firstStateOn('fail' as 'build'), /no snapshot begins with fail/)
  })

  test('a failed snapshot has a reason, which is removed when the snapshot is tried again', async () => {
    await using opened = await openTestDatabase()
    const { database } = opened
    await addSnapshots(database.sql, ['one'])
    await database.transaction((transaction) => happen(transaction, 'fail', 'one'))
    assert.equal((await find(database.sql, 'one')).get('one pending')?.reason, 'Why.')
    await database.transaction((transaction) => happen(transaction, 'bring-again', 'one'))
    const { state, reason } = (await find(database.sql, 'one')).get('one pending')!
    assert.deepEqual([state, reason], ['pending', null])
  })

  test('from each state of a snapshot, an event leads to at most one state; a creation can succeed or fail', () => {
    const pairs = snapshotMoves.map(([on, from]) => `${on} ${from}`)
    assert.equal(new Set(pairs).size, pairs.length)
    assert.deepEqual(
      snapshotEvents.filter((on) => !snapshotMoves.some((move) => move[0] === on)),
      [],
    )
    const reached = new Set<SnapshotState | null>(snapshotMoves.map(([, , to]) => to))
    assert.deepEqual(
      snapshotStates.filter((state) => !reached.has(state)),
      ['removing'],
    )
    // While a snapshot is being made, each of these four events changes its state. So no snapshot is being made forever.
    for (const state of statesInMaking) {
      for (const on of ['arrive', 'refuse', 'fail', 'give-up'] as const) assert.notEqual(endingOf(on, state), 'stays')
    }
  })
})

/** Opens enough connections to the database for all writers that a test runs at the same time. */
const openWide = (url: string): Database & AsyncDisposable => {
  const database = openDatabase(url, { max: events.length + 2 })
  return Object.assign(database, { [Symbol.asyncDispose]: () => database.close() })
}

/** Returns when `count` connections wait for a lock that the database process `first` holds. */
const untilWaiting = async (sql: Sql, first: number, count: number): Promise<void> => {
  const end = performance.now() + 30_000
  while (performance.now() < end) {
    const [row] = await sql<[{ waiting: number }]>`
      select count(*)::integer as waiting from pg_stat_activity
      where datname = current_database() and ${first} = any(pg_blocking_pids(pid))`
    if (row.waiting === count) return
  }
  assert.fail(`there are never ${count} who wait`)
}

suite('concurrent writes of one snapshot', () => {
  test('of two simultaneous requests for one move of a snapshot, only one changes the snapshot', async () => {
    await using opened = await openTestDatabase()
    const { database } = opened
    for (const on of events.filter((on) => on !== 'progress' && on !== 'lose-runner')) {
      await addSnapshots(database.sql, [on])
      const counts = await Promise.all(
        [1, 2].map(() => database.transaction((transaction) => happen(transaction, on, on))),
      )
      const moved = expected[on].filter((ending) => ending !== 'stays').length
      if (on !== 'delete') assert.equal(counts[0]! + counts[1]!, moved, on)
    }
  })

  test('if two events of a snapshot happen at the same time, the second starts from the result of the first', async () => {
    await using opened = await openTestDatabase()
    await using database = openWide(opened.url)
    const { sql } = database
    for (const first of events) {
      const groups = new Map(events.map((second) => [second, `${first} ${second}`]))
      await addSnapshots(sql, [...groups.values()])
      let later: Promise<number>[] = []
      await database.transaction(async (transaction) => {
        for (const group of groups.values()) await happen(transaction, first, group)
        later = events.map((second) => database.transaction((other) => happen(other, second, groups.get(second)!)))
        const waits = events.map((second) =>
          snapshotStates.some((state) => endingOf(first, state) !== 'stays' && endingOf(second, state) !== 'stays'),
        )
        // The first writer commits only when each later writer has either ended or is waiting for the first writer's
        // lock.
        await Promise.all(later.filter((_, index) => !waits[index]))
        const [{ pid }] = await transaction<[{ pid: number }]>`select pg_backend_pid() as pid`
        await untilWaiting(sql, pid, waits.filter(Boolean).length)
      })
      await Promise.all(later)
      for (const [second, group] of groups) {
        const found = await find(sql, group)
        const after = snapshotStates.map((state) => found.get(`${group} ${state}`)?.state ?? 'gone')
        assert.deepEqual(
          after,
          snapshotStates.map((state) => afterBoth(first, second, state)),
          group,
        )
      }
    }
  })
})

/**
 * Returns the state of a snapshot in `state` after the simultaneous events `first` and `second`. If `second` changes nothing in
 * `state`, only `first` has an effect. Otherwise `second` waits for `first`, and starts from the state that `first` has written.
 */
const afterBoth = (first: Event, second: Event, state: SnapshotState): string => {
  const led = (on: Event, from: SnapshotState) => {
    const ending = endingOf(on, from)
    return ending === 'stays' ? from : ending
  }
  const between = led(first, state)
  if (between === 'gone' || endingOf(second, state) === 'stays') return between
  return led(second, between)
}
