import { findRefundsDue } from '../../engine/ledger/clean-up.ts'
import { LedgerLostError } from '../../engine/base/errors.ts'
import { usesTestNetworks } from '../../engine/catalog/catalog.ts'
import { rpcVariable } from '../../engine/base/networks.ts'
import { formatCoin } from '../../engine/chains/evm/gas-balance.ts'
import { compilePage } from '../../engine/documents/page-frame.ts'
import type { TemplateContext } from '../../engine/documents/template.ts'
import type { NetworkHealth } from '../../engine/payment/network-health.ts'
import { saleFigures } from '../../engine/usage/sales-funnel.ts'
import { countOf } from '../../engine/base/words.ts'
import { type FeedCall, MOVED } from '../call-feed.ts'
import { channelsByNetwork, isAtRisk } from '../channel-rows.ts'
import { ledgerAway, ledgerLost } from '../view-fault.ts'
import { type Period, sumOf, totalsIn } from '../sale-sums.ts'
import { troubleOf } from '../network-trouble.ts'
import type { ConsoleSources } from '../sources.ts'
import { defineView, page } from '../view.ts'
import { dollars, elapsed, grouped, moment, percent, shortened } from '../wording.ts'
import { DAY_MS, dateOf } from '../../engine/ledger/sales-totals.ts'

/** What an operator wants to know at once, and the calls as they happen. */
export const now = defineView('now', 'Now', async ({ sources, feed }) => {
  const { service } = sources
  const { catalog } = service.revision()
  const [figures, networks, channels, warnings] = await Promise.all([
    todaysFigures(sources),
    networkRows(sources),
    channelsOf(sources),
    findWarnings(sources),
  ])
  return page('Now', {
    revision: catalog.revision,
    service: catalog.service.name,
    figures,
    networks,
    channels: channelsByNetwork(channels, sources.now()),
    warnings,
    calls: feed.calls().slice(0, SHOWN).map(callRow),
  })
})

/** None while the ledger cannot be read, which is a warning. */
function channelsOf({ channels }: ConsoleSources): ReturnType<ConsoleSources['channels']> {
  return channels().catch(() => [])
}

const SHOWN = 30
/** A figure that stays the same element while it changes. */
interface Figure extends TemplateContext {
  readonly id: string
}

const MOST_DUE = 1_000
/** Days over which the cost of a settlement is taken. */
const GAS_DAYS = 7
/** Gas for fewer calls is a warning. */
const FEW_CALLS = 200

/** The figures of today, which are sent again while the page is open. */
export async function todaysFigures(sources: ConsoleSources): Promise<readonly Figure[]> {
  const { ledger, now } = sources
  const date = dateOf(now())
  const today: Period = { days: 1, from: date, to: date }
  const [sales, counted, due] = await Promise.all([
    totalsIn(ledger, 'sale', today),
    ledger.counts.read(date, date),
    findRefundsDue(ledger, MOST_DUE),
  ])
  const { payments, dollars: revenue } = sumOf(sales)
  const count = (step: string): number =>
    saleFigures(counted).reduce(
      (sum, { of, count: each }) =>
        of.kind === 'step' && of.step === step && of.visitor === 'other' ? sum + each : sum,
      0,
    )
  const [asked, settled] = [count('asked'), count('settled')]
  return [
    {
      id: 'revenue',
      label: 'Revenue today',
      value: dollars(revenue),
      note: countOf(payments, 'sale'),
      link: '/revenue?days=1',
    },
    {
      id: 'rate',
      label: '402 → paid, today',
      value: asked === 0 ? '–' : percent(Math.min(settled, asked), asked),
      note: `${grouped(settled)} of ${grouped(asked)} asked`,
      link: '/lost-sales?days=1',
    },
    {
      id: 'due',
      label: 'Refunds due',
      value: due.length === MOST_DUE ? `${MOST_DUE}+` : String(due.length),
      note: due.length === 0 ? 'nobody is owed money' : 'see who is owed money',
      link: '/payments?show=due',
    },
  ]
}

/** What the gas of each signer is enough for. */
async function networkRows(sources: ConsoleSources): Promise<readonly TemplateContext[]> {
  const networks = await sources.networks()
  const cost = await gasCosts(sources)
  return networks.flatMap((health) => {
    const { network, balances } = health
    const trouble = troubleOf(health)
    const state = trouble === undefined ? 'open' : 'closed'
    const row = {
      network: network.title,
      id: network.id,
      state,
      isOpen: trouble === undefined,
      reason: trouble ?? '',
    }
    if (balances.size === 0) return [{ ...row, signer: '', balance: '', calls: '' }]
    return Array.from(balances, ([address, wei]) => {
      const calls = callsLeft(wei, health, cost)
      return {
        ...row,
        signer: shortened(address),
        balance: `${formatCoin(wei)} ${network.coin}`,
        calls: calls === undefined ? 'not known before the first settlement' : grouped(calls.toString()),
      }
    })
  })
}

/** Wei of a settlement by network, over the last days. */
async function gasCosts({ ledger, now }: ConsoleSources): Promise<ReadonlyMap<string, bigint>> {
  const from = dateOf(now() - (GAS_DAYS - 1) * DAY_MS)
  const sums = new Map<string, { wei: bigint; payments: bigint }>()
  for (const { of, amount, payments } of await totalsIn(ledger, 'gas', {
    days: 7,
    from,
    to: dateOf(now()),
  })) {
    if (of.kind !== 'gas') continue
    const sum = sums.get(of.network) ?? { wei: 0n, payments: 0n }
    sums.set(of.network, { wei: sum.wei + amount, payments: sum.payments + BigInt(payments) })
  }
  return new Map(
    Array.from(sums).flatMap(([network, { wei, payments }]) =>
      payments === 0n ? [] : [[network, wei / payments] as const],
    ),
  )
}

function callsLeft(
  wei: bigint,
  { network, totals: { transactions, gasSpent } }: NetworkHealth,
  costs: ReadonlyMap<string, bigint>,
): bigint | undefined {
  const recent = transactions === 0 ? undefined : gasSpent / BigInt(transactions)
  const cost = costs.get(network.id) ?? recent
  return cost === undefined || cost === 0n ? undefined : wei / cost
}

/** What is wrong, each with the next step. */
async function findWarnings(sources: ConsoleSources): Promise<readonly TemplateContext[]> {
  const { service, ledger, sandbox, titles } = sources
  const { catalog, routes, facts } = service.revision()
  const warnings: TemplateContext[] = []
  const warn = (text: string, step: string): void => void warnings.push({ text, step })
  const fault: unknown = await ledger.check().catch((caught: unknown) => caught)
  if (fault instanceof LedgerLostError) warnings.push(ledgerLost)
  else if (fault !== undefined) warnings.push(ledgerAway(titles.ledger))
  if (service.refused() !== undefined)
    warn(
      'The catalog file is refused; the revision before is served.',
      'See what is wrong on the page Catalog.',
    )
  const costs = await gasCosts(sources)
  for (const health of await sources.networks()) {
    const { network, balances, trouble, unmined, isNodeAway = false } = health
    if (isNodeAway)
      warn(
        `Nothing is sold on ${network.title}: its node does not answer.`,
        `Look at the endpoint in ${rpcVariable(network.id)}; payments are answered with 503 and not charged meanwhile.`,
      )
    if (trouble !== undefined)
      warn(
        `Nothing is sold on ${network.title}: ${trouble}.`,
        'It opens by itself once that is over; the log says more.',
      )
    for (const [address, wei] of balances) {
      const calls = callsLeft(wei, health, costs)
      if (calls !== undefined && calls < FEW_CALLS)
        warn(
          `Gas for ${grouped(calls.toString())} more calls on ${network.title}.`,
          `Send ${network.coin} to ${address}.`,
        )
    }
    if (unmined.count > 0 && unmined.age > 60_000)
      warn(
        `${countOf(unmined.count, 'transaction')} on ${network.title} waiting for a block since ${elapsed(unmined.age)}.`,
        'They are sent again with a higher fee up to max_fee_gwei; raise it if it stays so.',
      )
  }
  const atRisk = (await channelsOf(sources)).filter(isAtRisk)
  if (atRisk.length > 0)
    warn(
      `${countOf(atRisk.length, 'channel')} with unclaimed money being withdrawn from, or that cannot be claimed.`,
      'They are claimed at once; if it stays so, run ratecard payments claim, and look at the page Health.',
    )
  const unready = routes.filter(
    ({ route, readiness }) => route.kind === 'paid' && readiness === 'not_configured',
  )
  if (unready.length > 0)
    warn(
      `${countOf(unready.length, 'paid route')} not served: a setting is missing.`,
      'The page Routes names them, and the log their variables.',
    )
  if (!sandbox && usesTestNetworks(catalog.payments))
    warn(
      'This sells for the worthless money of test networks.',
      'Name only real networks in the catalog before you publish it.',
    )
  if (facts.protocols.length === 0 && routes.some(({ route }) => route.kind === 'paid'))
    warn('No way to pay is offered.', 'Run ratecard doctor: it says what is missing.')
  return warnings
}

/** A call of the feed as a row of its table. */
function callRow(call: FeedCall): TemplateContext {
  const { id, operation, payment, askedAt, signedAt, settledAt, deliveredAt, trouble, probe } = call
  const began = askedAt ?? signedAt ?? 0
  const after = (ms: number | undefined, before: number | undefined): string =>
    ms === undefined ? '' : before === undefined ? timeOf(ms) : `+${elapsed(ms - before)}`
  return {
    id: `call-${id}`,
    operation,
    payment: payment ?? '',
    began: { ...moment(began), words: timeOf(began) },
    asked: askedAt !== undefined,
    signed: signedAt === undefined ? '' : askedAt === undefined ? '✓' : after(signedAt, askedAt),
    settled: after(settledAt, signedAt),
    delivered: after(deliveredAt, settledAt ?? signedAt),
    outcome: trouble === undefined ? outcomeOf(call) : trouble.replaceAll('_', ' '),
    state:
      trouble !== undefined
        ? signedAt === undefined
          ? 'idle'
          : 'down'
        : deliveredAt === undefined
          ? 'idle'
          : 'up',
    probe,
  }
}

function outcomeOf({ signedAt, settledAt, deliveredAt, probe }: FeedCall): string {
  if (deliveredAt !== undefined) return 'delivered'
  if (settledAt !== undefined) return 'paid'
  if (signedAt !== undefined) return 'under way'
  return probe ? 'probe' : 'not paid'
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString().slice(11, 19)
}

const printCall = compilePage('partials/console-call.hbs')
const printFigure = compilePage('partials/console-figure.hbs')

/** The row of a call for a page that is open; undefined: the row goes. */
export function callHtml(call: FeedCall): { readonly id: string; readonly html: string | undefined } {
  const row = callRow(call)
  return { id: `call-${call.id}`, html: call.trouble === MOVED ? undefined : printCall(row) }
}

export function figureHtml(figure: Figure): { readonly id: string; readonly html: string } {
  return { id: `figure-${figure.id}`, html: printFigure(figure) }
}
