import { parseArgs } from 'node:util'
import { describePlan } from './buyer.ts'
import { describeFault, type StoreKind } from './faults.ts'
import { WAYS } from './market.ts'
import { shrink } from './shrink.ts'
import { drawHistory, simulate, withFacilitators, withFailovers, type History } from './simulation.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    purchases: { type: 'string' },
    store: { type: 'string', default: 'lmdb' },
    /** Ends at the first violation, without a shorter history. */
    quick: { type: 'boolean', default: false },
    'each-run': { type: 'string', default: '40' },
    /** Redis also takes back what it has acknowledged. */
    failovers: { type: 'boolean', default: false },
    /** Facilitators settle, for whom there is `exact` on Base alone. */
    facilitators: { type: 'boolean', default: false },
    /** The ways to pay, separated by commas. */
    ways: { type: 'string' },
  },
})
const store: StoreKind = values.store === 'redis' ? 'redis' : 'lmdb'
const ways = (values.ways ?? (values.facilitators ? 'exact' : WAYS.join())).split(',').map((name) => {
  const way = WAYS.find((known) => known === name)
  if (way === undefined) throw new Error(`--ways is ${name}; known ways are ${WAYS.join(', ')}`)
  return way
})
const perRun = Number(values['each-run'])
const first = values.seed === undefined ? 1 + Math.floor(Math.random() * 1_000_000_000) : Number(values.seed)
const runs =
  values.seed === undefined || values.purchases !== undefined
    ? Math.ceil(Number(values.purchases ?? 20_000) / perRun)
    : 1

let [purchases, charges, steps] = [0, 0, 0]
const begun = performance.now()
for (let seed = first; seed < first + runs; seed += 1) {
  const drawn = drawHistory(seed, store, perRun, ways)
  const settled = values.facilitators ? withFacilitators(drawn) : drawn
  const history = values.failovers ? withFailovers(settled) : settled
  const outcome = await simulate(history)
  purchases += history.plans.length
  charges += outcome.charges
  steps += outcome.steps
  if (runs === 1) console.log(`trace ${outcome.digest}`)
  if (runs === 1 && values.quick) for (const line of outcome.trace) console.log(line)
  if (outcome.violations.length > 0 && values.quick) {
    console.log(`found after ${purchases} purchases: ${outcome.violations[0]?.split('\n')[0]}`)
    process.exit(1)
  }
  if (outcome.violations.length > 0) await fail(history)
}
const seconds = (performance.now() - begun) / 1000
console.log(
  `${purchases} purchases on ${store}, ${charges} charges, ${steps} events, ${Math.round(purchases / seconds)} purchases a second: 0 violations (seeds ${first} to ${first + runs - 1})`,
)
process.exit(0)

async function fail(history: History): Promise<never> {
  const shortest = await shrink(history)
  const { violations, trace } = await simulate(shortest)
  console.log(
    `seed ${history.seed}, store ${store}, ${history.processes} processes; the shortest history found:`,
  )
  for (const plan of shortest.plans) console.log(`  ${describePlan(plan)}`)
  for (const fault of shortest.faults) console.log(`  ${describeFault(fault)}`)
  console.log('the trace:')
  for (const line of trace) console.log(`  ${line}`)
  for (const violation of violations) console.log(`VIOLATION: ${violation}`)
  console.log(
    `again: npm run simulate -- --seed ${history.seed} --store ${store} --each-run ${perRun} --ways ${ways.join()}${values.facilitators ? ' --facilitators' : ''}`,
  )
  process.exit(1)
}
