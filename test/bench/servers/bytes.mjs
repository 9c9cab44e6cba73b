// node:http with the very bytes our server sends: what sending them costs, without making them.
import { createServer } from 'node:http'
import { given, ready } from './ready.mjs'

const answers = new Map(await given())

ready(
  createServer(({ url }, response) => {
    const { headers, body } = answers.get(url)
    response.writeHead(402, headers).end(body)
  }),
)
