import { Failure, InvalidParameter } from 'ratecard'

/** Work that asks the test how each run ends: the test counts the runs and may act on the payer meanwhile. */
function work(name) {
  return async ({ n }, { signal, payment }) => {
    const query = new URLSearchParams({ name, n, payer: payment?.payer ?? '' })
    const response = await fetch(`${process.env.GUARD_DIRECTOR}?${query}`, { signal })
    const { run, fault } = await response.json()
    if (fault === 'source') throw new Failure('source_error', 'the source is broken')
    if (fault === 'parameter') throw new InvalidParameter('n', 'n names nothing')
    if (fault === 'bug') throw new TypeError('secret of the implementation')
    const body = { n, run, ...(fault === 'large' ? { filler: 'x'.repeat(1_100_000) } : {}) }
    return { source: [{ name: 'guard' }], body }
  }
}

const unset = { run: work('unset'), configured: false }
const names = [
  'item',
  'other',
  'deep',
  'deep-flaky',
  'flaky',
  'thrown',
  'picky',
  'slow',
  'large',
  'drained',
  'free',
  'note',
  'replaced',
]
/** Bytes of a picture, the last one first. */
const picture = async ({ body }, { payment }) => ({
  content: { type: 'image/png', bytes: body.toReversed(), headers: { 'X-Payment-Seen': payment.id } },
})

export const handlers = { ...Object.fromEntries(names.map((name) => [name, work(name)])), unset, picture }
