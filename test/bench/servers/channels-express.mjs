// @x402/express with its server of scheme batch-settlement. Its facilitator is in the same process.
import { createServer } from 'node:http'
import express from 'express'
import { Redis } from 'ioredis'
import { paymentMiddleware, x402ResourceServer } from '@x402/express'
import { BatchSettlementEvmScheme, InMemoryChannelStorage } from '@x402/evm/batch-settlement/server'
import { FileChannelStorage } from '@x402/evm/batch-settlement/server/file-storage'
import { RedisChannelStorage } from '@x402/evm/batch-settlement/server/redis-storage'
import { privateKeyToAccount } from 'viem/accounts'
import { given, ready } from './ready.mjs'
import { createFacilitator, NETWORK } from './settle.mjs'

const settings = await given()
const { payTo, authorizerKey, store, dataDir, redisUrl } = settings

const STORES = {
  memory: () => new InMemoryChannelStorage(),
  file: () => new FileChannelStorage({ directory: dataDir }),
  Redis: () => new RedisChannelStorage({ client: clientOf(new Redis(redisUrl)) }),
}

/** The calls of node-redis, which the store is written for. */
function clientOf(redis) {
  return {
    get: (key) => redis.get(key),
    set: (key, value) => redis.set(key, value),
    del: (key) => redis.del(key),
    eval: (script, { keys, arguments: values }) => redis.eval(script, keys.length, ...keys, ...values),
    async *scanIterator({ MATCH, COUNT }) {
      yield* redis.scanStream({ match: MATCH, count: COUNT })
    },
  }
}

const scheme = new BatchSettlementEvmScheme(payTo, {
  storage: STORES[store](),
  receiverAuthorizerSigner: privateKeyToAccount(authorizerKey),
})
const route = {
  description: 'Answers at once',
  mimeType: 'application/json',
  accepts: {
    scheme: 'batch-settlement',
    network: NETWORK,
    payTo,
    price: '$0.001',
    maxTimeoutSeconds: 600,
    extra: { minDeposit: '1000000' },
  },
}
const resources = new x402ResourceServer(createFacilitator(settings)).register(NETWORK, scheme)
const app = express()
app.disable('x-powered-by')
app.use(paymentMiddleware({ 'GET /paid/answer': route }, resources))
app.get('/paid/answer', ({ query }, response) => {
  response.json({ n: Number(query.n) })
})
ready(createServer(app))
