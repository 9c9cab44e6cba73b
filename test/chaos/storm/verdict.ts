import type { Blow, Diary, Received, Want } from './diary.ts'
import type { Charge } from './money.ts'

/** What became of one want, by the chain and by the receipt its buyer was given. */
export interface Verdict {
  readonly want: Want
  /** Made with what was signed for it. */
  readonly charges: readonly Charge[]
  /** What its receipt proves; undefined for what was never fetched. */
  readonly proof: Proof | undefined
}

export type Proof =
  /** Names a charge made with a payment for this very want. */
  | { readonly kind: 'own' }
  /**
   * Names the charge of an earlier want of the same buyer for the same thing, and brings the same run of the work: the
   * answer of that one was struck by a kill before the server could know that it had arrived, so it was given again
   * and the new payment left alone (“new payment for a lost answer”).
   */
  | { readonly kind: 'again'; readonly first: Want; readonly blow: Blow }
  | { readonly kind: 'none'; readonly why: string }

/** The server takes an answer for delivered two seconds after its last byte; a busy machine is late with that. */
const UNSURE_MS = 4_000

/** One verdict for every want, in the order in which they arose. */
export function judge({ wants, blows }: Diary, charges: readonly Charge[]): Verdict[] {
  const payers = new Map(wants.flatMap((want) => [...want.payments.keys()].map((mark) => [mark, want])))
  const answers = wants.flatMap(({ received }) => (received === undefined ? [] : [received]))
  const struck = (received: Received): Blow | undefined =>
    blows.find(
      ({ to, begun, over }) =>
        (to === received.from || to === 'store') &&
        over >= received.asked &&
        begun <= received.at + UNSURE_MS,
    )
  const prove = (want: Want, received: Received): Proof => {
    const charge = charges.find(({ transaction }) => transaction === received.transaction)
    if (charge === undefined) return none('its receipt names no charge')
    const first = payers.get(charge.mark)
    if (first === want) return { kind: 'own' }
    if (first?.received === undefined) return none(`${charge.mark} was charged for what nobody has fetched`)
    if (first.buyer !== want.buyer || first.route !== want.route || first.n !== want.n)
      return none(`${charge.mark} was charged for something else`)
    if (first.received.run !== received.run) return none('the work was done once more for it')
    const blow = struck(first.received)
    const before = answers.filter(
      ({ transaction, at }) => transaction === received.transaction && at < received.asked,
    )
    const unsure = before.includes(first.received) && before.every((answer) => struck(answer) !== undefined)
    if (blow === undefined || !unsure)
      return none(`the answer for ${charge.mark} had arrived, and nothing was killed about then`)
    return { kind: 'again', first, blow }
  }
  return wants.map((want) => ({
    want,
    charges: charges.filter(({ mark }) => want.payments.has(mark)),
    proof: want.received === undefined ? undefined : prove(want, want.received),
  }))
}

function none(why: string): Proof {
  return { kind: 'none', why }
}
