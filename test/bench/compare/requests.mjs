import { ask } from './buyer.mjs'
import { countTexts } from './count-texts.mjs'

const base64 = (text) => Buffer.from(text).toString('base64')

/** Malformed payment headers. */
const MALFORMED = [
  'no base64!',
  base64('no JSON'),
  base64('null'),
  base64('{}'),
  base64('{"x402Version":2,"payload":{}}'),
]

/** Sends HEAD to a paid path, and malformed payments. */
export async function oddRequests(shop) {
  const runs = shop.upstream.runs()
  const head = await ask(shop, shop.path('/paid/work'), { method: 'HEAD' })
  const ran = shop.upstream.runs() - runs
  const answers = []
  for (const header of MALFORMED)
    answers.push(await ask(shop, shop.path('/paid/work'), { headers: { 'payment-signature': header } }))
  return [
    ['HEAD on a paid path', String(head.status)],
    ['… handler runs', ran],
    [`${MALFORMED.length} payment headers that cannot be read`, countTexts(answers.map(({ text }) => text))],
  ]
}
