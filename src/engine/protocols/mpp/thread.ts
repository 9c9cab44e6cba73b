import { parentPort, workerData } from 'node:worker_threads'
import { createClient, http, type Client } from 'viem'
import { tempo } from 'viem/tempo/chains'
import { createSimulation } from './simulation.ts'
import { readTransaction } from './transaction.ts'
import type { Answer, Answered, Asked, Question, ThreadSettings } from './validator.ts'

/** Slower than any healthy node, and less than a question may take. */
const TIMEOUT_MS = 5_000

const settings: ThreadSettings = workerData
const clients = new Map<number, Client>()
const simulate = createSimulation(settings, clientOf)

/** Throws when there is no endpoint for the chain. */
function clientOf(chainId: number): Client {
  const known = clients.get(chainId)
  if (known !== undefined) return known
  const url = settings.rpcUrls[chainId]
  if (url === undefined) throw new Error(`chain ${chainId} has no RPC endpoint`)
  const chain = { ...tempo, id: chainId, rpcUrls: { default: { http: [url] } } }
  const client = createClient({ chain, transport: http(url, { retryCount: 0, timeout: TIMEOUT_MS }) })
  clients.set(chainId, client)
  return client
}

function answer(question: Question): Promise<Answer> {
  switch (question.kind) {
    case 'read': {
      const { transaction, demand } = question
      return readTransaction(clientOf(demand.chainId), transaction, demand)
    }
    case 'simulate':
      return simulate(question.token)
  }
}

parentPort?.on('message', ({ id, question }: Asked) => {
  void answer(question).then((said) => {
    const answered: Answered = { id, answer: said }
    parentPort?.postMessage(answered)
  })
})
