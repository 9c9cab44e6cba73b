import { ask } from './buyer.mjs'
import { tally } from './tally.mjs'

const base64 = (text) => Buffer.from(text).toString('base64')

/** Payment headers nobody can read. */
const MALFORMED = [
  'no base64!',
  base64('no JSON'),
  base64('null'),
  base64('{}'),
  base64('{"x402Version":2,"payload":{}}'),
]

/** HEAD on a paid path, and payments that cannot be read. */
export async function oddRequests(market) {
  const runs = market.workplace.runs()
  const head = await ask(market, market.path('/paid/work'), { method: 'HEAD' })
  const ran = market.workplace.runs() - runs
  const answers = []
  for (const header of MALFORMED)
    answers.push(await ask(market, market.path('/paid/work'), { headers: { 'payment-signature': header } }))
  return [
    ['HEAD on a paid path', String(head.status)],
    ['… handler runs', ran],
    [`${MALFORMED.length} payment headers that cannot be read`, tally(answers.map(({ text }) => text))],
  ]
}
