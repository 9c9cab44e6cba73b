// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

interface IToken {
    function transfer(address to, uint256 value) external returns (bool);
    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes calldata signature
    ) external;
}

/// @title Collects deposits of channels by EIP-3009, on a chain that lives on one machine.
/// @notice Its nonce names the channel, so that a signed deposit goes into the channel that its payer meant. It stands at
/// the same address as the collector of the x402 scheme `batch-settlement`.
contract DepositCollector {
    address private constant CHANNELS = 0x4020074e9dF2ce1deE5A9C1b5c3f541D02a10003;

    error OnlyChannels();

    function collect(address payer, address token, uint256 amount, bytes32 channelId, bytes calldata data) external {
        if (msg.sender != CHANNELS) revert OnlyChannels();
        (uint256 validAfter, uint256 validBefore, uint256 salt, bytes memory signature) =
            abi.decode(data, (uint256, uint256, uint256, bytes));
        bytes32 nonce = keccak256(abi.encode(channelId, salt));
        IToken(token).receiveWithAuthorization(payer, address(this), amount, validAfter, validBefore, nonce, signature);
        IToken(token).transfer(CHANNELS, amount);
    }
}
