// Represents the API that you already have. It knows nothing about payments.
import { createServer } from 'node:http'

const KILOGRAMS = new Map([
  ['sencha', 12.5],
  ['assam', 40],
])

const server = createServer(({ url, headers }, response) => {
  const answer = (status, body) => {
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
  }
  if (headers.authorization !== `Bearer ${process.env.STOCK_TOKEN}`)
    return answer(401, { error: 'wrong token' })
  const { pathname, searchParams } = new URL(url, 'http://localhost')
  const leaf = pathname.replace('/stock/', '')
  const kilograms = KILOGRAMS.get(leaf)
  if (kilograms === undefined) return answer(404, { error: 'no such tea' })
  const unit = searchParams.get('unit')
  answer(200, { leaf, amount: unit === 'pounds' ? kilograms * 2.2046 : kilograms, unit })
})
server.listen(8787, '127.0.0.1', () => console.log('listening on http://127.0.0.1:8787'))
