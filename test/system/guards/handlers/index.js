import { Failure, InvalidParameter } from 'ratecard'

/** Work that asks the test how each run ends: the test counts the runs and may act on the payer meanwhile. */
function work(name) {
  return async ({ n }, { signal, payment }) => {
    const query = new URLSearchParams({ name, n, payer: payment?.payer ?? '', id: payment?.id ?? '' })
    const response = await fetch(`${process.env.GUARD_CONTROLLER}?${query}`, { signal })
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
  'deep-picky',
  'flaky',
  'thrown',
  'picky',
  'slow',
  'large',
  'drained',
  'free',
  'note',
  'replaced',
  'removed',
  'letter',
]
/** Bytes of a picture, the last one first. */
const picture = async ({ body }, { payment }) => ({
  content: { type: 'image/png', bytes: body.toReversed(), headers: { 'X-Payment-Seen': payment.id } },
})

/** A small PDF with the bytes above 127 that tell programs it is no text. */
const report = async ({ n }) => {
  const text = `%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj <</Type/Catalog/Page ${n}>> endobj\n%%EOF\n`
  return {
    content: { type: 'application/pdf', bytes: Buffer.from(text, 'latin1'), headers: { ETag: `"${n}"` } },
  }
}

/** The work of a note, in pieces. */
const streamed = async (parameters, context) => {
  const { body } = await work('streamed')(parameters, context)
  const line = `${JSON.stringify(body)}\n`
  const pieces = async function* () {
    yield line.slice(0, 5)
    yield line.slice(5)
  }
  return { content: { type: 'application/x-ndjson', stream: pieces() } }
}

export const handlers = {
  ...Object.fromEntries(names.map((name) => [name, work(name)])),
  unset,
  picture,
  report,
  streamed,
}
