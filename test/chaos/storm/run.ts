import { parseArgs } from 'node:util'
import { storm, type Aftermath } from './storm.ts'

// Children end with the process, which a signal would end without asking.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '200' },
    processes: { type: 'string', default: '1' },
    ledger: { type: 'string', default: 'lmdb' },
    protocol: { type: 'string', default: 'x402' },
    buyers: { type: 'string', default: '48' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
})
const seed = Number(values.seed)
const kills = Number(values.kills)
const processes = Number(values.processes)
const store = oneOf(['lmdb', 'redis'] as const, values.ledger)
const protocol = oneOf(['x402', 'mpp'] as const, values.protocol)
const of = `${processes} process${processes === 1 ? '' : 'es'}`
console.log(`seed ${seed}: ${kills} kills of ${of}, paid by ${protocol}, ledger in ${store}`)

const aftermath = await storm({
  kills,
  processes,
  store,
  protocol,
  seed,
  buyers: Number(values.buyers),
  progress: ({ kills: killed, diary: { wants, cutOff } }) => {
    const fetched = wants.filter(({ received }) => received !== undefined).length
    const line = `${killed}/${kills} kills, ${fetched} of ${wants.length} things fetched, ${cutOff} requests cut off`
    if (process.stdout.isTTY) process.stdout.write(`\r${line}\u001b[K`)
  },
})
report(aftermath)
const { lost, doubled, uncharged, crossed, strange, unresolved, misbooked, miskept } = aftermath.tally
const bad = [lost, doubled, uncharged, crossed, strange, unresolved, misbooked, miskept]
process.exitCode = bad.every((amount) => amount === 0) ? 0 : 1

function report({ tally, findings, diary, recovery, leaked, complaints }: Aftermath): void {
  const statuses = [...diary.statuses].sort(([a], [b]) => a - b)
  const rows: [string, string | number][] = [
    ['kills', kills],
    ['things wanted', tally.wanted],
    ['results fetched', tally.fetched],
    ['payments signed', tally.signed],
    ['charges on chain', tally.charges],
    ['handler runs', tally.runs],
    ['lost charges', tally.lost],
    ['doubled charges', tally.doubled],
    ['lost answers given again', tally.again],
    ['given without a charge', tally.uncharged],
    ['receipts for something else', tally.crossed],
    ['charges nobody signed for', tally.strange],
    ['entries unresolved', tally.unresolved],
    ['charges misbooked', tally.misbooked],
    ['things miskept', tally.miskept],
    ['wrong answers', diary.wrong],
    ['requests cut off', diary.cutOff],
    ['answers', statuses.map(([status, times]) => `${status}: ${times}`).join(', ')],
    ['5xx', statuses.reduce((sum, [status, times]) => (status >= 500 ? sum + times : sum), 0)],
    ['recovered after', `${(recovery / 1000).toFixed(1)} s`],
    ['leaked', leaked.length === 0 ? 'nothing' : leaked.join(', ')],
    ['complaints', complaints.length],
  ]
  console.log()
  for (const [name, value] of rows) console.log(`${name.padEnd(27)} ${value}`)
  for (const line of new Set(complaints)) console.log(`  ${line}`)
  for (const line of findings) console.log(line)
}

function oneOf<T extends string>(names: readonly T[], given: string): T {
  const found = names.find((name) => name === given)
  if (found === undefined) throw new Error(`${given} is none of ${names.join(', ')}`)
  return found
}
