// Kills control between a commit and its webhook, many times, and says what arrived: `node bench/webhook-kills.ts [kills]`.
// Fails when an event that was committed did not arrive, or one that was not did.
import { runKills } from '#test/control/webhook-kills.ts'

const kills = Number(process.argv[2] ?? 200)
console.log(JSON.stringify(await runKills(kills, console.log)))
