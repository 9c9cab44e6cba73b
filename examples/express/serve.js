import { once } from 'node:events'
import { createServer } from 'node:http'
import express from 'express'
import { createRatecard } from 'ratecard'
import { handlers } from './handlers.js'

const { PORT = '4021', PAY_TO: payTo, FACILITATOR_URL: url, FACILITATOR_TOKEN: token } = process.env
const app = express()
app.get('/', (_, response) => response.send('An Express application with paid routes below /paid/'))

// A payment travels in a header, and the second of two in the same header must not be lost.
const server = createServer({ maxHeaderSize: 65_536, joinDuplicateHeaders: true }, app)
await once(server.listen(PORT), 'listening')
const { BASE_URL: baseUrl = `http://localhost:${server.address().port}` } = process.env
const payments = { x402: { payTo, facilitators: [{ url, token }] } }
const ratecard = await createRatecard({ catalog: 'catalog.yaml', baseUrl, handlers, payments })
app.use(ratecard.callback())
console.log(`listening on ${baseUrl}`)
process.once('SIGTERM', () => server.close(() => void ratecard.close()))
