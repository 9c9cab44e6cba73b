// The smallest Koa that sends the bytes our server sends: the ceiling for whoever builds on Koa.
import { createServer } from 'node:http'
import Koa from 'koa'
import { given, ready } from './ready.mjs'

const answers = new Map(await given())
const app = new Koa()
app.use((ctx) => {
  const { headers, body } = answers.get(ctx.url)
  ctx.status = 402
  ctx.set(headers)
  ctx.body = body
})

const answer = app.callback()
ready(createServer((request, response) => void answer(request, response)))
