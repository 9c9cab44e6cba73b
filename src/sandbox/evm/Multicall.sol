// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// Functions of Multicall3, with their selectors, arguments and results: batched settlement uses the first one, facilitators
/// of the x402 SDK the other.
contract Multicall {
    struct Call {
        address target;
        bool allowFailure;
        bytes callData;
    }

    struct Result {
        bool success;
        bytes returnData;
    }

    function aggregate3(Call[] calldata calls) external payable returns (Result[] memory results) {
        results = new Result[](calls.length);
        for (uint256 place = 0; place < calls.length; place++) {
            Call calldata each = calls[place];
            (bool success, bytes memory returnData) = each.target.call(each.callData);
            require(success || each.allowFailure, "a call has failed");
            results[place] = Result(success, returnData);
        }
    }

    struct StrictCall {
        address target;
        bytes callData;
    }

    function tryAggregate(bool requireSuccess, StrictCall[] calldata calls)
        external
        payable
        returns (Result[] memory results)
    {
        results = new Result[](calls.length);
        for (uint256 place = 0; place < calls.length; place++) {
            (bool success, bytes memory returnData) = calls[place].target.call(calls[place].callData);
            require(success || !requireSuccess, "a call has failed");
            results[place] = Result(success, returnData);
        }
    }
}
