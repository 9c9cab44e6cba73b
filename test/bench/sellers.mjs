// Who is measured with payments: each sells `work` and `answer` for 0.01 USD on one chain.
import { fileURLToPath } from 'node:url'
import { startOurs } from './servers/ours.mjs'
import { startPeer } from './servers/peer.mjs'

const fileOf = (path) => fileURLToPath(new URL(path, import.meta.url))

/** Settles with a key of its own, or through `facilitatorUrl`. */
const ours = {
  name: 'ours',
  start: ({ rpcUrl, payTo, settlerKey, facilitatorUrl, workplace, dataDir }) =>
    startOurs(fileOf('paid/catalog.yaml'), {
      args: ['--handlers', fileOf('paid/handlers')],
      dataDir,
      env: {
        // The port changes with every start.
        BASE_URL: 'https://api.example.com',
        PAY_TO: payTo,
        ...(facilitatorUrl === undefined
          ? { SETTLER_PRIVATE_KEY: settlerKey, RPC_URL_8453: rpcUrl }
          : { FACILITATOR_URL: facilitatorUrl }),
        WORKPLACE: workplace,
      },
    }),
}

const express = {
  name: '@x402/express',
  start: ({ rpcUrl, payTo, settlerKey, facilitatorUrl, workplace }) =>
    startPeer('paid-express', { rpcUrl, payTo, settlerKey, facilitatorUrl, workplace }),
}

export const SELLERS = [ours, express]
