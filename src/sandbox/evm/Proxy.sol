// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title What the test token is paid through, as USDC is through FiatTokenProxy.
/// @notice Reads its administrator and its implementation from the same storage slots with every call, so that a payment
/// costs the gas it costs there, alone and in a batch. Left out: upgrades.
contract Proxy {
    fallback() external payable {
        address administrator;
        assembly ("memory-safe") {
            // keccak256("org.zeppelinos.proxy.admin")
            administrator := sload(0x10d6a54a4754c8869d6886b5f5d7fbfa5b4522237ea5c60d11bc4e7a1ff9390b)
        }
        require(msg.sender != administrator, "Cannot call fallback function from the proxy admin");
        assembly {
            // keccak256("org.zeppelinos.proxy.implementation")
            let implementation := sload(0x7050c9e0f4ca769c69bd3a8ef740bc37934f8e2c036e5a723fd8ee048ed3f8c3)
            calldatacopy(0, 0, calldatasize())
            let success := delegatecall(gas(), implementation, 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            switch success
            case 0 { revert(0, returndatasize()) }
            default { return(0, returndatasize()) }
        }
    }
}
