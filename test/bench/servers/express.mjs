// @x402/express with the same routes, prices and networks. Its challenge says less than ours: no bazaar extension.
import { createServer } from 'node:http'
import express from 'express'
import { paymentMiddleware, x402ResourceServer } from '@x402/express'
import { ExactEvmScheme } from '@x402/evm/exact/server'
import { given, ready } from './ready.mjs'

const listing = await given()
const networks = [...new Set(listing.flatMap(({ accepts }) => accepts.map(({ network }) => network)))]
const unused = () => Promise.reject(new Error('nothing is paid in this measurement'))
const facilitator = {
  verify: unused,
  settle: unused,
  getSupported: async () => ({
    kinds: networks.map((network) => ({ x402Version: 2, scheme: 'exact', network })),
    extensions: [],
    signers: {},
  }),
}
const resources = new x402ResourceServer(facilitator)
for (const network of networks) resources.register(network, new ExactEvmScheme())

const routes = listing.map(({ path, resource, accepts }) => [
  `GET ${path.replace(/\{([^}]*)\}/g, ':$1')}`,
  {
    description: resource.description,
    mimeType: 'application/json',
    accepts: accepts.map(({ scheme, network, payTo, asset, amount, extra, maxTimeoutSeconds }) => ({
      scheme,
      network,
      payTo,
      maxTimeoutSeconds,
      price: { asset, amount, extra },
    })),
  },
])

const app = express()
app.disable('x-powered-by')
app.use(paymentMiddleware(Object.fromEntries(routes), resources))

ready(createServer(app))
