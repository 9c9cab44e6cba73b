// The facilitator of @x402/core as a service: POST /verify, POST /settle, GET /supported, at a port that is given.
import { createServer } from 'node:http'
import express from 'express'
import { given } from './ready.mjs'
import { createFacilitator } from './settle.mjs'

const { port, ...settings } = await given()
const facilitator = createFacilitator(settings)
const app = express()
app.use(express.json())
app.post('/verify', async ({ body: { paymentPayload, paymentRequirements } }, response) => {
  response.json(await facilitator.verify(paymentPayload, paymentRequirements))
})
app.post('/settle', async ({ body: { paymentPayload, paymentRequirements } }, response) => {
  response.json(await facilitator.settle(paymentPayload, paymentRequirements))
})
app.get('/supported', async (_, response) => {
  response.json(await facilitator.getSupported())
})
createServer(app).listen(port, '127.0.0.1', () => process.send({ port }))
