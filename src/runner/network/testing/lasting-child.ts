// The program that lasting-program.test.ts runs. On request it sends a text back, ends, or takes memory outside of its heap.
type Word = { type: 'echo'; text: string } | { type: 'end' } | { type: 'take'; bytes: number }

const taken: Buffer[] = []

process.on('message', (word: Word) => {
  if (word.type === 'end') process.exit(3)
  else if (word.type === 'echo') process.send?.({ type: 'heard', text: word.text, pid: process.pid })
  else taken.push(Buffer.alloc(word.bytes, 1))
})
process.on('disconnect', () => process.exit(0))
process.send?.({ type: 'serving' })
