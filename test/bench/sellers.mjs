// Who is measured with payments: each sells `work` and `answer` for 0.01 USD on one chain.
import { fileURLToPath } from 'node:url'
import { randomKey } from '../support/payment.ts'
import { LAG_PROBE } from './servers/event-loop.mjs'
import { startOurs } from './servers/ours.mjs'
import { startPeer } from './servers/peer.mjs'

const fileOf = (path) => fileURLToPath(new URL(path, import.meta.url))

/** Settles with a key of its own, or through `facilitatorUrl`. */
export const OURS = oursWith('ours', {})

/** The same, and it tells how late its event loop comes. */
export const OURS_PROBED = oursWith('ours', { nodeArgs: LAG_PROBE })

/** Two workers of one `serve`, each with an account of its own. */
export const OURS_BY_WORKERS = oursWith('ours, two workers', { args: ['--workers', '2'] })

function oursWith(name, { args = [], nodeArgs }) {
  return {
    name,
    start: ({ rpcUrl, payTo, signerKey, facilitatorUrl, upstream, dataDir }) =>
      startOurs(fileOf('paid/catalog.yaml'), {
        args: ['--handlers', fileOf('paid/handlers'), ...args],
        nodeArgs,
        dataDir,
        env: {
          // The port changes with every start.
          BASE_URL: 'https://api.example.com',
          PAY_TO: payTo,
          ...(facilitatorUrl === undefined
            ? { SETTLER_PRIVATE_KEY: signerKey, RPC_URL_8453: rpcUrl }
            : { FACILITATOR_URL: facilitatorUrl }),
          UPSTREAM: upstream,
        },
      }),
  }
}

/** Two processes with one ledger in Redis and one signer. */
export const OURS_TWICE = {
  name: 'ours, two processes on Redis',
  start: async ({ rpcUrl, payTo, signerKey, upstream, redisUrl }) => {
    const start = () =>
      startOurs(fileOf('paid/catalog.yaml'), {
        args: ['--handlers', fileOf('paid/handlers')],
        env: {
          BASE_URL: 'https://api.example.com',
          PAY_TO: payTo,
          SETTLER_PRIVATE_KEY: signerKey,
          RPC_URL_8453: rpcUrl,
          REDIS_URL: redisUrl,
          UPSTREAM: upstream,
        },
      })
    const servers = [await start(), await start()]
    return {
      port: servers[0].port,
      ports: servers.map(({ port }) => port),
      pids: servers.map(({ pid }) => pid),
      stop: () => servers.forEach(({ stop }) => stop()),
      alive: () => servers.every(({ alive }) => alive()),
    }
  },
}

const express = {
  name: '@x402/express',
  start: ({ rpcUrl, payTo, signerKey, facilitatorUrl, upstream }) =>
    startPeer('paid-express', { rpcUrl, payTo, signerKey, facilitatorUrl, upstream }),
}

export const SELLERS = [OURS, express]

export { express as EXACT }

/** Sells `answer` for 0.001 USD through channels, with its ledger in LMDB or Redis. */
function oursByChannels(name, storeOf) {
  return {
    name,
    start: ({ rpcUrl, payTo, signerKey, dataDir, redisUrl }) =>
      startOurs(fileOf('paid/channels.yaml'), {
        args: ['--handlers', fileOf('paid/handlers')],
        dataDir,
        env: {
          BASE_URL: 'https://api.example.com',
          PAY_TO: payTo,
          SETTLER_PRIVATE_KEY: signerKey,
          RPC_URL_8453: rpcUrl,
          CHANNEL_AUTHORIZER_KEY: randomKey(),
          ...storeOf(redisUrl),
        },
      }),
  }
}

function expressByChannels(store) {
  return {
    name: `@x402/express, channels in ${store}`,
    start: (settings) => startPeer('channels-express', { ...settings, store, authorizerKey: randomKey() }),
  }
}

export const CHANNEL_SELLERS = [
  oursByChannels('ours, channels in LMDB', () => ({})),
  oursByChannels('ours, channels in Redis', (redisUrl) => ({ REDIS_URL: redisUrl })),
  expressByChannels('memory'),
  expressByChannels('file'),
  expressByChannels('Redis'),
]
