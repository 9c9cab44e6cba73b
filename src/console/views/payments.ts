import { findRefundsDue } from '../../engine/ledger/clean-up.ts'
import type { Ledger } from '../../engine/ledger/ledger.ts'
import { chargeStatus, refundStateOf } from '../../engine/ledger/payment-lifecycle.ts'
import type { PaymentRecord } from '../../engine/ledger/payment-record.ts'
import type { SearchPlace, SearchTerm } from '../../engine/ledger/search-term.ts'
import type { TemplateContext } from '../../engine/documents/template.ts'
import type { ConsoleSources } from '../sources.ts'
import { defineView, page } from '../view.ts'
import { exactAmount, moment, networkTitle, shortened } from '../wording.ts'

const SHOWN = 50
const ID = /^pay_[\w-]{22}$/

/** The payments, the newest first, and the search for one by what an operator knows of it. */
export const payments = defineView('payments', 'Payments', async ({ sources, query }) => {
  const { ledger } = sources
  const asked = (query.get('q') ?? '').trim().slice(0, 200)
  if (ID.test(asked) && (await ledger.find(asked)) !== undefined)
    return { kind: 'elsewhere', path: `/payments/${asked}` }
  const isDue = query.get('show') === 'due'
  const before = placeOf(query.get('before') ?? '')
  const found = isDue
    ? await findRefundsDue(ledger, SHOWN)
    : asked === ''
      ? await ledger.search(undefined, SHOWN, before)
      : await find(sources, asked, before)
  const last = found.at(-1)
  const next = new URLSearchParams({
    ...(asked === '' ? {} : { q: asked }),
    before: last === undefined ? '' : `${last.createdAt}.${last.id}`,
  })
  return page('Payments', {
    q: asked,
    isDue,
    isSearch: asked !== '' && !isDue,
    rows: found.map((record) => paymentRow(record, ledger)),
    older: !isDue && found.length >= SHOWN ? `/payments?${next.toString()}` : '',
  })
})

async function find(
  { ledger, payerKeys }: ConsoleSources,
  text: string,
  before: SearchPlace | undefined,
): Promise<readonly PaymentRecord[]> {
  const payers = new Set([...payerKeys(text), text])
  const terms: SearchTerm[] = [
    ...Array.from(payers, (payer) => ({ kind: 'payer' as const, payer })),
    ...Array.from(new Set([text, text.toLowerCase()]), (transaction) => ({
      kind: 'transaction' as const,
      transaction,
    })),
  ]
  const found = (await Promise.all(terms.map((term) => ledger.search(term, SHOWN, before)))).flat()
  const each = new Map(found.map((record) => [record.id, record]))
  return [...each.values()].toSorted((one, other) => other.createdAt - one.createdAt).slice(0, SHOWN)
}

function placeOf(text: string): SearchPlace | undefined {
  const [, createdAt, id] = /^(\d{1,15})\.(pay_[\w-]{22})$/.exec(text) ?? []
  return createdAt === undefined || id === undefined ? undefined : { createdAt: Number(createdAt), id }
}

const STATES = { yes: 'up', no: 'idle', unknown: 'degraded' } as const

function paymentRow(record: PaymentRecord, ledger: Ledger): TemplateContext {
  const { id, createdAt, operation, network, asset, payer, receipt, amount, state } = record
  const charged = chargeStatus(record)
  const refund = refundStateOf(record, ledger.now())
  return {
    id,
    time: moment(createdAt),
    operation,
    network: networkTitle(network),
    payer,
    payerShort: shortened(payer),
    amount: exactAmount(BigInt(receipt?.amount ?? amount), network, asset),
    state: STATES[charged],
    words: refund === undefined ? state : `${state}, refund ${refund}`,
  }
}
