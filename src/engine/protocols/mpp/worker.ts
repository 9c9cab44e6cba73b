import { parentPort, workerData } from 'node:worker_threads'
import { Challenge, Credential, Errors } from 'mppx'
import { Mppx, tempo } from 'mppx/server'
import { createClient, http, type Client } from 'viem'
import { tempo as tempoChain } from 'viem/tempo/chains'
import type { ErrorCode } from '../../errors.ts'
import { isOutage, readTransaction } from './transaction.ts'
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
  const chain = { ...tempoChain, id: chainId, rpcUrls: { default: { http: [url] } } }
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

/** mppx’s own judgement of a credential, with one call that lets the chain carry the transaction out on trial. */
function createSimulation(
  { realm, secretKeys }: ThreadSettings,
  clientOf: (chainId: number) => Client,
): (token: string) => Promise<Answer> {
  const counters = secretKeys.map((secretKey) => {
    const charge = tempo.charge({
      supportedModes: ['pull'],
      getClient: ({ chainId = 0 }) => clientOf(chainId),
    })
    return { secretKey, mppx: Mppx.create({ realm, secretKey, methods: [charge] }) }
  })
  return async (token) => {
    try {
      const credential = Credential.deserialize(`Payment ${token}`)
      // It knows one secret at a time.
      const counter = counters.find(({ secretKey }) => Challenge.verify(credential.challenge, { secretKey }))
      if (counter === undefined) return refuse('invalid_challenge', 'the challenge was not issued here')
      await counter.mppx.validateCredential(credential)
      return { kind: 'fit' }
    } catch (fault) {
      return isOutage(fault) ? { kind: 'unavailable' } : explain(fault)
    }
  }
}

function explain(fault: unknown): Answer {
  if (fault instanceof Errors.PaymentExpiredError)
    return refuse('payment_expired', 'the challenge has expired')
  if (fault instanceof Errors.PaymentError)
    return refuse('verification_failed', 'the transaction does not pay this challenge')
  return refuse(
    'verification_failed',
    'the network would not carry the transaction out: the payer needs the amount and the fee on top of it',
  )
}

function refuse(code: ErrorCode, detail: string): Answer {
  return { kind: 'refused', refusal: { code, detail } }
}
