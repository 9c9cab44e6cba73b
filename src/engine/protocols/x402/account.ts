import { privateKeyToAccount } from 'viem/accounts'
import { keccak256 } from 'viem/utils'
import type { Account } from './signer.ts'

/** An account whose private key is in this process. */
export function openAccount(key: `0x${string}`): Account {
  const account = privateKeyToAccount(key)
  return {
    address: account.address,
    sign: async (transaction) => {
      const raw = await account.signTransaction({ type: 'eip1559', ...transaction })
      return { raw, hash: keccak256(raw) }
    },
  }
}
