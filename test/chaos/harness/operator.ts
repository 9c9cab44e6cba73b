import { setTimeout as delay } from 'node:timers/promises'
import type { PaymentRecord } from '../../../src/engine/ledger/payment-record.ts'
import type { RunningServer } from '../../support/server.ts'
import type { Charge } from './payment-method.ts'
import type { PurchaseLog } from './purchase-log.ts'

/** An operator with an open console, whose process is killed with the others. */
export interface Operator {
  /** Enters the console of a process that has just started, keeps its events open and reads one view after the other. */
  open(server: RunningServer): Promise<void>
  /** Pages that were read. */
  readonly read: () => number
  /** What the console shows in the end. */
  figures(): Promise<ShownFigures>
  close(): Promise<void>
}

export interface ShownFigures {
  readonly revenue: Money
  readonly settled: number
  readonly delivered: number
}

export interface Money {
  readonly payments: number
  /** In atomic units of a currency with six decimals. */
  readonly amount: bigint
}

/** Between two pages, as a person reads. */
const PAUSE_MS = 300
const VIEWS = ['/', '/revenue', '/lost-sales', '/payments', '/routes', '/buyers', '/health']
/** Longer than a run that begins before midnight (UTC) takes. */
const PERIOD = 'days=7'

export function createOperator(): Operator {
  let read = 0
  let visit:
    { readonly ask: (path: string) => Promise<string>; readonly leave: () => Promise<void> } | undefined

  const open = async (server: RunningServer): Promise<void> => {
    await visit?.leave()
    const entrance = await entranceOf(server)
    const { origin } = new URL(entrance)
    const cookie = (await fetch(entrance)).headers.get('set-cookie')?.split(';')[0] ?? ''
    const leaving = new AbortController()
    const ask = async (path: string): Promise<string> => {
      const answer = await fetch(origin + path, { headers: { cookie } })
      const text = await answer.text()
      read += 1
      return text
    }
    const isGone = (): boolean =>
      leaving.signal.aborted || server.process.exitCode !== null || server.process.signalCode !== null
    const reading = (async () => {
      for (let count = 0; !isGone(); count += 1) {
        await ask(VIEWS[count % VIEWS.length] ?? '/')
        await delay(PAUSE_MS)
      }
    })()
    const events = fetch(`${origin}/events`, { headers: { cookie }, signal: leaving.signal }).then((answer) =>
      answer.text(),
    )
    // A killed process ends both in the middle.
    const ended = Promise.allSettled([reading, events])
    const leave = async (): Promise<void> => {
      leaving.abort()
      await ended
    }
    visit = { ask, leave }
  }
  return {
    open,
    read: () => read,
    figures: async () => {
      if (visit === undefined) throw new Error('no console is open')
      const [csv, funnel] = [
        await visit.ask(`/revenue.csv?${PERIOD}`),
        await visit.ask(`/lost-sales?${PERIOD}`),
      ]
      const step = (name: string): number =>
        Number(new RegExp(`data-step="${name}">([\\d,]+)<`).exec(funnel)?.[1]?.replaceAll(',', '') ?? 0)
      const rows = csv.trim().split('\r\n').slice(1)
      const sales = rows.map((row) => row.split(',').slice(-2))
      return {
        revenue: sumOf(sales.map(([payments = '', amount = '']) => ({ payments: Number(payments), amount }))),
        settled: step('settled'),
        delivered: step('delivered'),
      }
    },
    close: async () => visit?.leave(),
  }
}

async function entranceOf({ said, output }: RunningServer): Promise<string> {
  await said(ENTRANCE)
  return ENTRANCE.exec(output())?.[1] ?? ''
}

const ENTRANCE = /^console: (\S+)$/m

interface SpeltMoney {
  readonly payments: number
  readonly amount: string
}

/** Amounts as they are printed: with six decimals. */
export function sumOf(sums: readonly SpeltMoney[]): Money {
  return {
    payments: sums.reduce((total, { payments }) => total + payments, 0),
    amount: sums.reduce((total, { amount }) => total + BigInt(amount.replace('.', '')), 0n),
  }
}

export interface ConsoleEvidence {
  readonly shown: ShownFigures
  /** What `payments list --totals` prints. */
  readonly listed: Money
  readonly charges: readonly Charge[]
  readonly records: readonly PaymentRecord[]
  readonly log: Pick<PurchaseLog, 'purchases' | 'kills'>
}

/** A process writes down what it has counted every two seconds; on a busy machine that is late. */
export const UNWRITTEN_MS = 3_000

/** Money that is not the same in the console, in the list and on the chain; steps that differ by more than kills explain. */
export function consoleMismatches({ shown, listed, charges, records, log }: ConsoleEvidence): string[] {
  const charged: Money = {
    payments: charges.length,
    amount: charges.reduce((total, { amount }) => total + amount, 0n),
  }
  const money = Object.entries({ console: shown.revenue, 'payments list --totals': listed })
    .filter(([, { payments, amount }]) => payments !== charged.payments || amount !== charged.amount)
    .map(([where, sum]) => `${where}: ${spell(sum)}; on the chain: ${spell(charged)}`)
  const settled = records.filter(({ receipt }) => receipt !== undefined)
  const delivered = settled.filter(({ state }) => state === 'sent')
  // Their settlement was counted before a reorganization had undone it for good.
  const undone = records.filter((each) => each.receipt === undefined && each.undone !== undefined).length
  const steps = [
    { step: 'settled', count: shown.settled, records: settled, at: (each: PaymentRecord) => each.settledAt },
    {
      step: 'delivered',
      count: shown.delivered,
      records: delivered,
      at: (each: PaymentRecord) => each.deliveredAt,
    },
  ]
  return [
    ...money,
    ...steps.flatMap(({ step, count, records: all, at }) => {
      const lost = uncountedAtMost(all, at, records, log)
      if (count <= all.length + undone && count >= all.length - lost) return []
      return [`${step}: ${count} of ${all.length}, though kills explain ${lost} at most`]
    }),
  ]
}

/** Changes that a process may have made within the time before its kill, or during a kill of the store. */
function uncountedAtMost(
  changed: readonly PaymentRecord[],
  at: (record: PaymentRecord) => number | undefined,
  records: readonly PaymentRecord[],
  { purchases, kills }: ConsoleEvidence['log'],
): number {
  const byId = new Map(records.map((record) => [record.id, record]))
  const windows = kills.map(({ target, from, until }) => {
    const answers = purchases.flatMap(({ answer }) => (answer?.from === target ? [answer] : []))
    const owners = new Set(answers.map(({ payment }) => byId.get(payment ?? '')?.owner))
    return {
      target,
      owners,
      from: from - UNWRITTEN_MS,
      until: target === 'store' ? until + UNWRITTEN_MS : from,
    }
  })
  return changed.filter((record) => {
    const time = at(record)
    return (
      time === undefined ||
      windows.some(
        ({ target, owners, from, until }) =>
          time >= from &&
          time <= until &&
          // Whose payment it was first cannot be told once another process has taken it over.
          (target === 'store' || record.attempts > 0 || owners.has(record.owner)),
      )
    )
  }).length
}

function spell({ payments, amount }: Money): string {
  return `${payments} payments, ${amount}`
}
