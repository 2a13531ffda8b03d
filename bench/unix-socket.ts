// The lower bound for streams: a file is copied in a sandbox through two `cat`s with a unix socket between them.
import type { Box } from '#test/sandboxes/box.ts'

const program = `
import os, socket, subprocess, sys, time
source, target = sys.argv[1:]
one, other = socket.socketpair()
began = time.perf_counter()
into = open(target, 'wb')
giver = subprocess.Popen(['cat', source], stdout=one)
taker = subprocess.Popen(['cat'], stdin=other, stdout=into)
one.close(); other.close()
assert giver.wait() == 0 and taker.wait() == 0
if os.path.isfile(target): os.fsync(into.fileno())
print((time.perf_counter() - began) * 1000)
`

export type Floor = {
  /**
   * Copies a file of the sandbox from `source` to `target`. Returns how many milliseconds this took, with the sync of
   * the copy.
   */
  cat: (source: string, target: string) => Promise<number>
}

export const openFloor = async (box: Box): Promise<Floor> => {
  await box.run(`cat > ~/floor.py <<'END'\n${program}\nEND`)
  return { cat: async (source, target) => Number(await box.run(`python3 ~/floor.py ${source} ${target}`)) }
}
