import { findSvmNetwork, findTransactionPage } from '../../engine/base/networks.ts'
import { chargeStatus, refundStateOf } from '../../engine/ledger/payment-lifecycle.ts'
import type { PaymentRecord } from '../../engine/ledger/payment-record.ts'
import { paymentStory } from '../../engine/ledger/payment-story.ts'
import type { TemplateContext } from '../../engine/documents/template.ts'
import { countOf } from '../../engine/base/words.ts'
import type { ConsoleSources } from '../sources.ts'
import { defineView, page } from '../view.ts'
import { bytes, elapsed, exactAmount, moment, networkTitle, shortened, timeWords } from '../wording.ts'

/** One payment: what happened between buyer, service and network, and the one thing that can be done about it. */
export const payment = defineView('payment', 'Payments', async ({ sources, rest, query }) => {
  const record = await sources.ledger.find(rest)
  if (record === undefined) return { kind: 'missing', what: 'This ledger has no such payment.' }
  const { means, advice } = paymentStory(record, sources.now())
  const {
    id,
    operation,
    payer,
    payee,
    network,
    asset,
    protocol,
    scheme,
    revision,
    settle,
    createdAt,
    validBefore,
  } = record
  return page('Payment', {
    id,
    operation,
    amount: amountOf(record),
    state: record.state,
    means: means.replace(ISO_TIME, '$1 $2 UTC'),
    advice: advice === 'nothing' ? '' : advice,
    steps: exchangeOf(record, sources),
    facts: [
      fact('Payer', payer, `/payments?q=${encodeURIComponent(payer)}`),
      fact('Paid to', payee),
      fact('Network', `${networkTitle(network)} (${network})`),
      fact('Token', asset),
      fact('Way to pay', `${protocol} ${scheme}`),
      fact('Settled', settle === 'after' ? 'after the work' : 'before the work'),
      fact('Catalog revision', revision),
      fact('Payment valid until', timeWords(validBefore)),
      fact('Answer', answerWords(record)),
    ],
    taken: moment(createdAt),
    refund: refundLink(record, sources),
    result: RESULTS[query.get('refund') ?? ''] ?? '',
  })
})

const ISO_TIME = /(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)[.\d]*Z/g

/** What a refund that was just made has come to. */
const RESULTS: Readonly<Record<string, string>> = {
  sent: 'The refund was sent and is in a block.',
  unconfirmed:
    'The refund was sent and is in no block yet. Press the button again later: it is never sent twice.',
}

/** The page that asks before money is sent. */
export const refund = defineView('refund', 'Payments', async ({ sources, rest, query }) => {
  const record = await sources.ledger.find(rest)
  if (record === undefined) return { kind: 'missing', what: 'This ledger has no such payment.' }
  const { id, payer, operation, network } = record
  return page('Refund', {
    id,
    operation,
    amount: amountOf(record),
    payer,
    network: networkTitle(network),
    possible: refundLink(record, sources) !== '',
    hasKey: sources.refund !== undefined,
    variable: findSvmNetwork(network) === undefined ? 'REFUND_PRIVATE_KEY' : 'SOLANA_REFUND_PRIVATE_KEY',
    reason: (query.get('reason') ?? '').slice(0, 500),
  })
})

function refundLink(record: PaymentRecord, { refund: send, now }: ConsoleSources): string {
  const isRefunded = refundStateOf(record, now()) === 'sent'
  return send === undefined || chargeStatus(record) !== 'yes' || isRefunded
    ? ''
    : `/payments/${record.id}/refund`
}

function amountOf({ receipt, amount, network, asset }: PaymentRecord): string {
  return exactAmount(BigInt(receipt?.amount ?? amount), network, asset)
}

function fact(label: string, value: string, link = ''): TemplateContext {
  return { label, value, link }
}

function answerWords({ answer, settledAt, redeliver }: PaymentRecord): string {
  if (answer === undefined) return 'none is stored'
  const until = settledAt === undefined ? '' : `, kept until ${timeWords(settledAt + redeliver)}`
  return `${bytes(answer.size)} of ${answer.mediaType}${until}`
}

/** The parties of an exchange, from the left to the right. */
type Party = 'buyer' | 'service' | 'network'

interface Step {
  readonly from: Party
  readonly to: Party
  readonly text: string
  readonly at?: number | undefined
  readonly detail?: string
  readonly transaction?: string | undefined
  readonly tone?: 'done' | 'open' | 'bad'
}

/** The exchange in the order in which it happened. */
function exchangeOf(record: PaymentRecord, sources: ConsoleSources): readonly TemplateContext[] {
  const steps: Step[] = [
    {
      from: 'buyer',
      to: 'service',
      text: 'signs and pays',
      at: record.createdAt,
      detail: `up to ${exactAmount(BigInt(record.authorizedAmount), record.network, record.asset)}`,
    },
    ...(record.settle === 'after'
      ? [...work(record), ...settlement(record)]
      : [...settlement(record), ...work(record)]),
    ...delivery(record),
    ...refundSteps(record, sources),
  ]
  return steps.map(({ from, to, text, at, detail = '', transaction, tone = 'done' }) => ({
    from,
    to,
    arrow: from !== to,
    text,
    detail,
    tone,
    time: at === undefined ? '' : moment(at),
    after: at === undefined || at === record.createdAt ? '' : `+${elapsed(at - record.createdAt)}`,
    transaction: transaction ?? '',
    transactionShort: shortened(transaction ?? ''),
    link: transaction === undefined ? '' : explorerLink(record.network, transaction, sources),
  }))
}

function work({ answer, state, receipt, settle }: PaymentRecord): Step[] {
  if (answer !== undefined)
    return [
      {
        from: 'service',
        to: 'service',
        text: 'does the work and stores the answer',
        detail: bytes(answer.size),
      },
    ]
  if (state === 'reserved') return [{ from: 'service', to: 'service', text: 'does the work', tone: 'open' }]
  if (state === 'voided')
    return [
      {
        from: 'service',
        to: 'service',
        text: 'the payment was not charged, and nothing is stored',
        tone: 'bad',
      },
    ]
  if (settle === 'upfront' && state === 'settled')
    return [{ from: 'service', to: 'service', text: 'the work has not succeeded', tone: 'bad' }]
  return receipt === undefined
    ? []
    : [{ from: 'service', to: 'service', text: 'did the work; the answer is no longer stored' }]
}

function settlement({ dispatch, receipt, settledAt, state, undone, network, asset }: PaymentRecord): Step[] {
  const steps: Step[] = []
  if (dispatch?.kind === 'own')
    steps.push({
      from: 'service',
      to: 'network',
      text: 'sends the settlement',
      transaction: dispatch.hash,
      detail:
        dispatch.members === undefined || dispatch.members === 1
          ? ''
          : `with ${countOf(dispatch.members - 1, 'other payment')}`,
    })
  if (dispatch?.kind === 'payer')
    steps.push({
      from: 'service',
      to: 'network',
      text: 'sends the transaction of the buyer',
      transaction: dispatch.hash,
    })
  if (dispatch?.kind === 'handed over')
    steps.push({
      from: 'service',
      to: 'service',
      text: `leaves the settlement to the process of ${dispatch.signer}`,
    })
  if (dispatch?.kind === 'facilitator')
    steps.push({
      from: 'service',
      to: 'network',
      text: `asks the facilitator ${URL.canParse(dispatch.url) ? new URL(dispatch.url).host : ''} to settle`,
    })
  if (undone !== undefined)
    steps.push({
      from: 'network',
      to: 'service',
      text: 'its block was undone by a reorganization',
      tone: 'bad',
    })
  if (receipt !== undefined)
    steps.push({
      from: 'network',
      to: 'service',
      text:
        receipt.transaction === '' ? 'charged in the ledger; the money moves later' : 'the money has moved',
      at: settledAt,
      detail: exactAmount(BigInt(receipt.amount), network, asset),
      transaction: receipt.transaction === '' ? undefined : receipt.transaction,
    })
  else if (state === 'settling' || state === 'unknown')
    steps.push({ from: 'network', to: 'service', text: 'the outcome is not known yet', tone: 'open' })
  return steps
}

function delivery({ state, receipt, deliveredAt }: PaymentRecord): Step[] {
  if (receipt === undefined) return []
  if (state !== 'sent')
    return [{ from: 'service', to: 'buyer', text: 'the answer is not known to have arrived', tone: 'open' }]
  return [{ from: 'service', to: 'buyer', text: 'the answer arrived', at: deliveredAt }]
}

function refundSteps(record: PaymentRecord, { now }: ConsoleSources): Step[] {
  const { refund: made } = record
  if (made !== undefined && made.kind !== 'due')
    return [
      {
        from: 'service',
        to: 'buyer',
        text: made.kind === 'sent' ? 'the money was sent back' : 'a refund was sent and is in no block yet',
        at: made.sentAt,
        transaction: made.hash,
        tone: made.kind === 'sent' ? 'done' : 'open',
      },
    ]
  return refundStateOf(record, now()) === 'due'
    ? [{ from: 'service', to: 'buyer', text: 'a refund is due', tone: 'bad' }]
    : []
}

/** None on the local chains of a sandbox. */
function explorerLink(network: string, transaction: string, { sandbox }: ConsoleSources): string {
  return sandbox ? '' : (findTransactionPage(network, transaction) ?? '')
}
