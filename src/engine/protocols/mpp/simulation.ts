import { Challenge, Credential, Errors } from 'mppx'
import { Mppx, tempo } from 'mppx/server'
import type { Client } from 'viem'
import type { ErrorCode } from '../../errors.ts'
import { isOutage } from './outage.ts'
import type { Answer, ThreadSettings } from './validator.ts'

/** mppx’s own judgement of a credential, with one call that lets the chain carry the transaction out on trial. */
export function createSimulation(
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
