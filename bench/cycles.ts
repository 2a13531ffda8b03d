// Pauses and resumes a sandbox many times, then archives and restores it many times. Checks that each file keeps its bytes and,
// after a pause, that each process still runs. Prints the number of cycles. `node bench/cycles.ts [cycles]`, as root.
import assert from 'node:assert/strict'
import { createBox, until } from '#test/sandboxes/box.ts'
import { platform } from '#test/sandboxes/harness.ts'
import { keep, type Samples, say, timed } from './samples.ts'

const cycles = Number(process.argv[2] ?? 200)

/** Makes files of all kinds. Their checksum changes with the content or any attribute of a file. */
const plant = `
set -e; mkdir -p ~/tree/deep/er && cd ~/tree
head -c 3M /dev/urandom > random; head -c 100 /dev/urandom > small; : > empty
truncate -s 50M sparse; printf end | dd of=sparse bs=1 seek=52000000 conv=notrunc status=none
ln random hard; ln -s ../small deep/link; ln -s /nowhere deep/dangling; mkfifo pipe
chmod 4750 small; touch -d '2001-02-03 04:05:06.789012345' empty; printf 'odd' > "$(printf 'a\\nb \\xc3\\xa9')"
for n in $(seq 300); do echo "$n" > "deep/er/$n"; done; rm -f /home/daytona/.bashrc`
const fingerprint = `cd ~/tree && { find . -printf '%p %y %m %s %n %l %T@ %b\\n' | sort; find . -type f -print0 | sort -z | xargs -0 sha256sum; ls -la ~ | grep -c bashrc || true; } | sha256sum`

await using alcove = await platform({ own: true })
const box = await createBox(alcove, { autoStopInterval: 0 })
await box.run(plant, { timeout: 120 })
const expected = await box.run(fingerprint)

const call = async (verb: string) => {
  const { status, body } = await alcove.api('POST', `/sandbox/${box.id}/${verb}`)
  assert.equal(status, 200, JSON.stringify(body))
}
const become = async (verb: string, state: string) => {
  await call(verb)
  const seen = async () => String((await alcove.api('GET', `/sandbox/${box.id}`)).body['state'])
  await until(`it is ${state}`, async () => (await seen()) === state, 120)
}

const counter =
  "setsid bash -c 'n=0; while :; do n=$((n+1)); echo $n > /dev/shm/n.new; mv /dev/shm/n.new /dev/shm/n; sleep 0.01; done' >/dev/null 2>&1 & echo $!"
const pid = await box.run(counter)
await until('it counts', async () => (await box.try('cat /dev/shm/n')).exitCode === 0)

const pauses: Samples = []
let last = 0
for (let cycle = 0; cycle < cycles; cycle++) {
  pauses.push(
    await timed(async () => {
      await become('pause', 'paused')
      await become('start', 'started')
    }),
  )
  await until('it counts on', async () => Number(await box.run('cat /dev/shm/n')) > last)
  last = Number(await box.run('cat /dev/shm/n'))
  assert.equal(await box.run(`kill -0 ${pid} && echo alive`), 'alive')
  if (cycle % 20 === 19) assert.equal(await box.run(fingerprint), expected)
}
console.log(
  `${cycles} times paused and resumed: the same process counts on, at ${last}; the files are identical. ${say(pauses)}`,
)

const archives: Samples = []
for (let cycle = 0; cycle < cycles; cycle++) {
  archives.push(
    await timed(async () => {
      await become('archive', 'archived')
      await become('start', 'started')
    }),
  )
  assert.equal(await box.run(fingerprint), expected, `cycle ${cycle}`)
  await box.run(`echo ${cycle} > ~/cycle`)
}
assert.equal(await box.run('cat ~/cycle'), String(cycles - 1))
console.log(`${cycles} times archived and restored: the files are identical. ${say(archives)}`)
console.log(keep('cycles', { cycles, pauses, archives, counted: last }))
