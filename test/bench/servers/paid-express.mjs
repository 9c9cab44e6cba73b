// @x402/express with paid work. Its facilitator is in the same process, or at `facilitatorUrl`.
import { createServer } from 'node:http'
import express from 'express'
import { paymentMiddleware, x402ResourceServer } from '@x402/express'
import { HTTPFacilitatorClient } from '@x402/core/server'
import { ExactEvmScheme } from '@x402/evm/exact/server'
import { given, ready } from './ready.mjs'
import { createFacilitator, NETWORK } from './settle.mjs'

const settings = await given()
const { payTo, facilitatorUrl, upstream } = settings
const facilitator =
  facilitatorUrl === undefined
    ? createFacilitator(settings)
    : new HTTPFacilitatorClient({ url: facilitatorUrl })

const route = {
  description: 'Asks the upstream of the measurement',
  mimeType: 'application/json',
  accepts: { scheme: 'exact', network: NETWORK, payTo, price: '$0.01', maxTimeoutSeconds: 60 },
}
const resources = new x402ResourceServer(facilitator).register(NETWORK, new ExactEvmScheme())
const app = express()
app.disable('x-powered-by')
app.use(paymentMiddleware({ 'GET /paid/work': route, 'GET /paid/answer': route }, resources))
app.get('/paid/work', async ({ query }, response) => {
  const work = await fetch(`${upstream}/${Number(query.n)}`)
  response.status(work.status).json({ n: Number(query.n), run: await work.json() })
})
app.get('/paid/answer', ({ query }, response) => {
  response.json({ n: Number(query.n) })
})
ready(createServer(app))
